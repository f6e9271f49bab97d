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

// maxPending is the number of changes that may wait for delivery; more count as a change of
// everything.
const maxPending = 10_000

// Watch calls changed, from one goroutine at a time, when another heed has stored or dropped
// an entry: with its tag, and whether it was dropped, or with "" when any may have changed
// because messages may have been lost. It also calls changed at the beginning. A later call of Watch replaces changed.
func (p *Policies) Watch(changed func(tag string, dropped bool)) {
	if p.changed.Swap(&changed) == nil {
		p.store.spawn(p.listen)
	}
}

// listen receives changes until the store is closed.
func (p *Policies) listen() {
	p.store.listen(p.channel(), func(message string, missed bool) {
		sender, tag, ok := strings.Cut(message, "\n")
		tag, dropped := strings.CutSuffix(tag, droppedMark)
		if missed || ok && sender != p.store.sender {
			p.hear(tag, dropped)
		}
	})
}

// hear passes a change on. While others are being handled it is kept, once for each tag, so
// that changes that come faster than they are handled do not pile up.
func (p *Policies) hear(tag string, dropped bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if tag == "" || len(p.pending) >= maxPending {
		p.pending = map[string]bool{"": false}
	} else if _, any := p.pending[""]; !any {
		p.pending[tag] = dropped || p.pending[tag]
	}
	if !p.delivering {
		p.delivering = true
		p.store.spawn(p.deliver)
	}
}

// deliver calls changed for pending changes until there are none, or the store is closed.
func (p *Policies) deliver() {
	for {
		p.mu.Lock()
		tags := p.pending
		p.pending, p.delivering = map[string]bool{}, len(tags) > 0
		p.mu.Unlock()
		if len(tags) == 0 {
			return
		}
		for tag, dropped := range tags {
			if p.store.ctx.Err() == nil {
				(*p.changed.Load())(tag, dropped)
			}
		}
	}
}

// channel returns the name of the channel of changes.
func (p *Policies) channel() string { return keyPrefix + p.space + ":changes" }

// droppedMark follows the tag in the message for one that was dropped.
const droppedMark = "\ndropped"

// message returns the message for a change of tag.
func (p *Policies) message(tag string) string { return p.store.sender + "\n" + tag }

// watchPing is how long a channel may be silent before it is pinged.
const watchPing = time.Second

// listen receives the messages of a channel until the store is closed. It calls hear for each,
// from one goroutine; missed means that earlier messages may have been lost, and that this
// call is not for a message.
func (s *Store) listen(name string, hear func(message string, missed bool)) {
	for s.ctx.Err() == nil {
		_ = guard(func() error {
			if channel := s.subscribe(name); channel != nil {
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

// subscribe subscribes to a channel; nil: no server is known for it. In a Cluster each node
// has all messages, and a random one is used each time.
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

// follow receives the messages of a channel until the connection is lost.
func (s *Store) follow(channel *redis.PubSub, hear func(string, bool)) {
	// The client may wait for the first octet of an answer without a deadline; only closing the
	// connection ends that.
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
		case *redis.Subscription: // earlier messages were missed
			hear("", true)
		case *redis.Message:
			hear(said.Payload, false)
		}
	}
}
