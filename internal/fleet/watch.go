package fleet

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// maxPending is how many changes may wait to be delivered; more count as one change
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
		p.store.spawn(p.deliver)
	}
}

// listen follows the channel of changes until the store is closed.
func (p *Policies) listen() {
	p.store.listen(p.channel(), func(message string, missed bool) {
		if sender, tag, ok := strings.Cut(message, "\n"); missed {
			p.queueChange("")
		} else if ok && sender != p.store.sender {
			p.queueChange(tag)
		}
	})
}

// queueChange queues a change of tag.
func (p *Policies) queueChange(tag string) {
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

// deliver reports queued changes, until the store is closed.
func (p *Policies) deliver() {
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

// channel is the name of the channel of changes.
func (p *Policies) channel() string { return keyPrefix + p.space + ":changes" }

// message returns the message for a change of tag.
func (p *Policies) message(tag string) string { return p.store.sender + "\n" + tag }

// watchPing is how long a channel may be silent before it is asked whether it is
// still there.
const watchPing = time.Second

// listen follows a channel until the store is closed. hear is called with each
// message, by one goroutine; missed says that there may have been others before
// it is heard, and that this is none.
func (s *Store) listen(name string, hear func(message string, missed bool)) {
	for s.ctx.Err() == nil {
		_ = guard(func() error {
			channel := s.subscribe(name)
			if channel != nil {
				defer channel.Close()
				s.follow(channel, hear)
			}
			return nil
		})
		select {
		case <-s.ctx.Done():
		case <-time.After(probeEvery):
		}
	}
}

// subscribe subscribes to a channel; nil: there is no server for it. In a Cluster each
// node has the messages of all, and another one is chosen each time, by chance.
func (s *Store) subscribe(name string) *redis.PubSub {
	cluster, ok := s.client.(*redis.ClusterClient)
	if !ok {
		return s.client.Subscribe(s.ctx, name)
	}
	ctx, cancel := context.WithTimeout(s.ctx, opTimeout)
	defer cancel()
	node, err := cluster.MasterForKey(ctx, rand.Text())
	if err != nil {
		return nil
	}
	return node.Subscribe(s.ctx, name)
}

// follow receives the messages of the channel until the connection is lost.
func (s *Store) follow(channel *redis.PubSub, hear func(string, bool)) {
	// The client may wait for the first octet of an answer without a deadline;
	// only a closed connection ends that.
	defer context.AfterFunc(s.ctx, func() { channel.Close() })()
	asked := false
	for {
		said, err := channel.ReceiveTimeout(s.ctx, watchPing)
		if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() && !asked {
			asked = true
			if channel.Ping(s.ctx) != nil {
				return
			}
			continue
		}
		if err != nil {
			return
		}
		asked = false
		switch said := said.(type) {
		case *redis.Subscription: // anything before it was missed
			hear("", true)
		case *redis.Message:
			hear(said.Payload, false)
		}
	}
}
