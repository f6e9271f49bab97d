package fleet

import "strings"

// maxPending is how many changes may wait to be told; more count as one change
// of everything.
const maxPending = 10_000

// Watch has changed called whenever another heed has stored or dropped
// something: with its tag, or with "" when anything may have changed, because
// word of it may have been missed. It is called by one goroutine at a time, and
// at the beginning. A later call replaces changed.
func (p *Policies) Watch(changed func(tag string)) {
	p.mu.Lock()
	first := p.changed == nil
	p.changed = changed
	p.mu.Unlock()
	if first {
		p.store.spawn(p.listen)
		p.store.spawn(p.tell)
	}
}

// listen follows the channel of changes until the store is closed.
func (p *Policies) listen() {
	p.store.listen(p.channel(), func(message string, missed bool) {
		if sender, tag, ok := strings.Cut(message, "\n"); missed {
			p.note("")
		} else if ok && sender != p.store.sender {
			p.note(tag)
		}
	})
}

// note has tag told.
func (p *Policies) note(tag string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.pending) >= maxPending {
		tag = ""
	}
	if tag == "" {
		clear(p.pending)
	}
	if !p.pending[""] {
		p.pending[tag] = true
	}
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// tell tells what was noted, until the store is closed.
func (p *Policies) tell() {
	for {
		select {
		case <-p.store.ctx.Done():
			return
		case <-p.wake:
		}
		p.mu.Lock()
		tags, changed := p.pending, p.changed
		p.pending = map[string]bool{}
		p.mu.Unlock()
		for tag := range tags {
			if p.store.ctx.Err() == nil {
				changed(tag)
			}
		}
	}
}

// channel is where changes are told.
func (p *Policies) channel() string { return keyPrefix + p.space + ":changes" }

// message tells of a change of tag.
func (p *Policies) message(tag string) string { return p.store.sender + "\n" + tag }
