package cache

import (
	"context"
	"net/http"
)

// DropFailures drops failed fetches without an answer of the site, so that the next request
// fetches again: other settings may reach the site. Answers of sites are kept, 5xx too, and so
// are older copies that are used in place of the site's file. It returns the number of dropped
// failures.
func (c *Cache) DropFailures(ctx context.Context) (dropped int) {
	for _, p := range c.store.slotsOf() {
		dropped += c.dropFailuresOf(ctx, p)
	}
	return dropped
}

func (c *Cache) dropFailuresOf(ctx context.Context, p *originSlot) (dropped int) {
	now := c.now()
	for _, v := range p.all() {
		if !v.unanswered() {
			continue
		}
		dropped++
		o := v.policy.Source().Origin
		pinned := c.store.pin(o, now)
		if v.copy() != nil {
			due := *v.entry
			due.AskAt, due.WaitAt = now, now
			pinned.replace(v.name, v.entry, &due)
		} else {
			c.forget(pinned, o, v.name)
		}
		c.store.unpin(pinned)
		if v.copy() == nil && c.shared != nil {
			_, _ = c.shared.Drop(ctx, tagOf(o)) // the status shows a store that is unreachable
		}
	}
	return dropped
}

// unanswered reports whether e is a failure without an answer of its site. A 407 is from a
// proxy (RFC 9110 §15.5.8).
func (e *entry) unanswered() bool {
	if e.Failures == 0 {
		return false
	}
	status := e.policy.Source().Status
	return status == 0 || status == http.StatusProxyAuthRequired
}
