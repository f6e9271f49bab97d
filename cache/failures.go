package cache

import (
	"context"
	"net/http"
)

// DropFailures forgets the failures of fetches that brought no answer of a site, so that
// the next request asks the site: other settings may reach it. An older copy that is used
// in place of the file of the site is kept. What a site has answered is kept too, 5xx among it.
// It returns how many failures were dropped.
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
			_, _ = c.shared.Drop(ctx, tagOf(o)) // a store that is away has its row in the status
		}
	}
	return dropped
}

// unanswered reports whether e is a failure without an answer of its site. A 407 is a
// proxy's (RFC 9110 §15.5.8).
func (e *entry) unanswered() bool {
	if e.Failures == 0 {
		return false
	}
	status := e.policy.Source().Status
	return status == 0 || status == http.StatusProxyAuthRequired
}
