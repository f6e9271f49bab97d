package fleet

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

// watchPing is how long a channel may be silent before it is asked whether it is
// still there.
const watchPing = time.Second

// listen follows a channel until the store is closed. hear is called with each
// message, by one goroutine; missed says that there may have been others before
// it is heard, and that this is none.
func (s *Store) listen(name string, hear func(message string, missed bool)) {
	for s.ctx.Err() == nil {
		channel := s.client.Subscribe(s.ctx, name)
		s.follow(channel, hear)
		channel.Close()
		select {
		case <-s.ctx.Done():
		case <-time.After(probeEvery):
		}
	}
}

// follow hears what the channel says until the connection is lost.
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
