package fleet

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"heed/internal/fleet/resp"
)

const (
	// masterTime is for how long a connection to a master that a Sentinel has named is
	// used, before the Sentinels are asked again.
	masterTime = time.Minute
	// maxSentinels bounds the Sentinels that are known.
	maxSentinels = 16
)

// newClient returns the library's client for o, whose connections bound replies. With
// Sentinels that is a client of one server: the library's own client for them reads
// their replies in goroutines where a panic would end the process.
func newClient(o *redis.UniversalOptions) redis.UniversalClient {
	if o.MasterName == "" {
		o.Dialer = (&storeDialer{tls: o.TLSConfig}).dial
		return redis.NewUniversalClient(o)
	}
	d := &storeDialer{tls: o.TLSConfig, master: o.MasterName, sentinels: slices.Clone(o.Addrs)}
	simple := o.Simple()
	d.sentinel = *o.Simple()
	d.sentinel.Username, d.sentinel.Password, d.sentinel.DB = o.SentinelUsername, o.SentinelPassword, 0
	d.sentinel.Dialer = d.dial
	simple.Dialer, simple.ConnMaxLifetime = d.dialMaster, masterTime
	return redis.NewClient(simple)
}

// storeDialer connects to the store.
type storeDialer struct {
	tls      *tls.Config   // nil: without TLS
	master   string        // its name; empty: no Sentinels
	sentinel redis.Options // of a client of any Sentinel, Addr excepted

	mu        sync.Mutex
	sentinels []string // host:port
	learned   bool     // that all Sentinels of the master are in sentinels
}

// dial connects to one server.
func (d *storeDialer) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	netDialer := &net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true}}
	c, err := netDialer.DialContext(ctx, network, addr)
	if err != nil || d.tls == nil {
		return limited(c, err)
	}
	config := d.tls.Clone()
	if config.ServerName, _, err = net.SplitHostPort(addr); err != nil {
		c.Close()
		return nil, err
	}
	secure := tls.Client(c, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return limited(secure, nil)
}

func limited(c net.Conn, err error) (net.Conn, error) {
	if err != nil {
		return nil, err
	}
	return resp.Limit(c), nil
}

// dialMaster connects to the server that the Sentinels name.
func (d *storeDialer) dialMaster(ctx context.Context, network, _ string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	d.mu.Lock()
	sentinels := slices.Clone(d.sentinels)
	d.mu.Unlock()
	type answer struct {
		addr string
		err  error
	}
	answers := make(chan answer, len(sentinels))
	for _, s := range sentinels {
		go func() {
			var a answer
			a.err = guard(func() (err error) {
				a.addr, err = d.ask(ctx, s)
				return err
			})
			answers <- a
		}()
	}
	var last error
	for range sentinels {
		a := <-answers // within the time of ctx
		if a.err == nil {
			return d.dial(ctx, network, a.addr)
		}
		last = a.err
	}
	return nil, fmt.Errorf("no Sentinel names a master %q: %w", d.master, last)
}

// ask returns the address of the master that a Sentinel names, and remembers the other
// Sentinels that it has seen.
func (d *storeDialer) ask(ctx context.Context, sentinel string) (string, error) {
	o := d.sentinel
	o.Addr = sentinel
	c := redis.NewSentinelClient(&o)
	defer c.Close()
	addr, err := c.GetMasterAddrByName(ctx, d.master).Result()
	if err != nil {
		return "", err
	}
	if len(addr) != 2 {
		return "", fmt.Errorf("%w: %d words for the address of %q", errNonsense, len(addr), d.master)
	}
	d.mu.Lock()
	learned := d.learned
	d.mu.Unlock()
	if !learned {
		others, err := c.Sentinels(ctx, d.master).Result()
		d.learn(others, err)
	}
	return net.JoinHostPort(addr[0], addr[1]), nil
}

func (d *storeDialer) learn(others []map[string]string, err error) {
	if err != nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.learned = true
	for _, o := range others {
		at := net.JoinHostPort(o["ip"], o["port"])
		if o["ip"] != "" && o["port"] != "" && len(d.sentinels) < maxSentinels && !slices.Contains(d.sentinels, at) {
			d.sentinels = append(d.sentinels, at)
		}
	}
}
