package fleet

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"heed/internal/pace/fleet/resp"
)

const (
	// masterTime is how long the address of a master that a Sentinel has named is used before
	// the Sentinels are queried again.
	masterTime = time.Minute
	// maxSentinels is the maximum number of known Sentinels.
	maxSentinels = 16
)

// slotsInterval is the interval at which the slots of a Cluster are read.
const slotsInterval = time.Second

// newClient returns the library's client for o, whose connections limit replies. With
// Sentinels it is a client of one server: the library's own client for Sentinels reads their
// replies in goroutines, where a panic would end the process. A client of a Cluster reports to
// slots. Each new connection uses the user, the passwords and the TLS of access.
func newClient(o redis.UniversalOptions, access func() *redis.UniversalOptions, slots redis.Hook) redis.UniversalClient {
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout = opTimeout, opTimeout, opTimeout
	o.ContextTimeoutEnabled, o.PoolTimeout, o.PoolSize = true, opTimeout, connections
	// Callers continue without the store, so nothing is retried: neither a command (three times
	// by default) nor a connection (five times, with pauses).
	o.MaxRetries, o.DialerRetries = -1, 1
	o.PipelinePoolSize = -1  // none: heed sends one command at a time
	o.DisableIdentity = true // it needs a right
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	o.CredentialsProvider = func() (user, password string) {
		a := access()
		return a.Username, a.Password
	}
	d := &storeDialer{access: access, master: o.MasterName, sentinels: slices.Clone(o.Addrs)}
	o.Dialer = d.dial
	switch {
	case o.IsClusterMode:
		return newCluster(o.Cluster(), slots)
	case o.MasterName == "":
		return redis.NewClient(o.Simple())
	}
	simple := o.Simple()
	d.sentinel = *o.Simple()
	d.sentinel.DB, d.sentinel.CredentialsProvider = 0, func() (user, password string) {
		a := access()
		return a.SentinelUsername, a.SentinelPassword
	}
	simple.Dialer, simple.ConnMaxLifetime = d.dialMaster, masterTime
	return redis.NewClient(simple)
}

// newCluster returns the library's client for a Cluster. It does not read replicas, which may
// be behind. Commands are not retried (see once), but at most three redirections are followed,
// which is the library's number: one to a slot's new master, and one during a move.
func newCluster(o *redis.ClusterOptions, slots redis.Hook) *redis.ClusterClient {
	// The default is a minute, in which a promotion is not noticed while the old master is
	// dead: only a node that answers can redirect.
	o.ClusterStateReloadInterval = slotsInterval
	// By default the library asks the nodes for all their commands, which needs a right and 0.3
	// MiB. The commands of heed name their keys.
	o.DisableRoutingPolicies = true
	o.NewClient = func(o *redis.Options) *redis.Client {
		c := redis.NewClient(o)
		c.AddHook(slots)
		return c
	}
	return redis.NewClusterClient(o)
}

// storeDialer connects to the store.
type storeDialer struct {
	access   func() *redis.UniversalOptions
	master   string        // the name of the master; empty: no Sentinels
	sentinel redis.Options // of clients of Sentinels, without Addr

	mu        sync.Mutex
	sentinels []string // host:port
	learned   bool     // all Sentinels of the master are in sentinels
}

// dial connects to one server.
func (d *storeDialer) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	plain := &net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true}}
	dial := plain.DialContext
	if config := d.access().TLSConfig; config != nil {
		dial = (&tls.Dialer{NetDialer: plain, Config: config}).DialContext
	}
	c, err := dial(ctx, network, addr)
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
	return nil, fmt.Errorf("no Sentinel has a master %q: %w", d.master, last)
}

// ask returns the address of the master that a Sentinel names, and adds the other Sentinels
// that it knows to sentinels.
func (d *storeDialer) ask(ctx context.Context, sentinel string) (string, error) {
	o := d.sentinel
	o.Addr = sentinel
	c := redis.NewSentinelClient(&o)
	defer c.Close()
	addr, err := c.GetMasterAddrByName(ctx, d.master).Result()
	if errors.Is(err, redis.Nil) { // elsewhere not an error
		return "", fmt.Errorf("%s watches none of this name", sentinel)
	}
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
		if others, err := c.Sentinels(ctx, d.master).Result(); err == nil {
			d.learn(others)
		}
	}
	return net.JoinHostPort(addr[0], addr[1]), nil
}

func (d *storeDialer) learn(others []map[string]string) {
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
