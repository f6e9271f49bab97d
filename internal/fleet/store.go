package fleet

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Limits of talking to the store.
const (
	// opTimeout is how long one question may take, a connection to be made for
	// it included: no request waits longer for a store that is dead.
	opTimeout = time.Second
	// probeEvery is how often a store that was away is tried again.
	probeEvery = 500 * time.Millisecond
	// connections is how many are open at a time, to each node.
	connections = 32
)

// Options say which store is opened.
type Options struct {
	// URL is where it is; see CheckURL.
	URL string
	// RootCAs are what its certificate is verified against, with rediss://;
	// nil: the system's.
	RootCAs *x509.CertPool
	// Log hears when the store is away and when it is back. It must not be nil.
	Log *slog.Logger
}

// Store is a connection to what a fleet of heeds shares. Make one with Open;
// it is safe for concurrent use.
type Store struct {
	client redis.UniversalClient
	log    *slog.Logger
	sender string // this process, in messages of changes
	hosts  string // for people

	ctx   context.Context // ends with Close
	end   context.CancelFunc
	tasks sync.WaitGroup

	opened time.Time

	mu     sync.Mutex
	health Health
	back   time.Time // when it was last found back after it was away; zero: never
	closed bool
	spaces map[string]*Policies
	turns  *Turns // nil until they are asked for
}

// Open prepares the way to the store. It does not wait for it: a store that is
// away is told to the log, and used when it comes. The error says what is wrong
// with the URL.
func Open(options Options) (*Store, error) {
	o, err := parseURL(options.URL, options.RootCAs)
	if err != nil {
		return nil, err
	}
	// The library writes lines of its own to stderr, where heed's log is.
	logging.Disable()
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout = opTimeout, opTimeout, opTimeout
	o.ContextTimeoutEnabled, o.PoolTimeout, o.PoolSize = true, opTimeout, connections
	o.MaxRetries, o.DialerRetries = -1, 1 // who asks can do without, and others try again soon
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	s := &Store{client: redis.NewUniversalClient(o), log: options.Log, sender: rand.Text(), hosts: strings.Join(o.Addrs, ","), opened: time.Now()}
	s.ctx, s.end = context.WithCancel(context.Background())
	s.spawn(func() { s.do(s.ctx, keyPrefix+"start", s.probe(keyPrefix+"start")) })
	return s, nil
}

// Close ends all that s does. Afterwards the store counts as away.
func (s *Store) Close() error {
	s.mu.Lock()
	turns := s.turns
	s.mu.Unlock()
	if turns != nil {
		turns.sayGone()
	}
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.end()
	err := s.client.Close()
	s.tasks.Wait()
	return err
}

// spawn runs task beside all else; Close waits for it.
func (s *Store) spawn(task func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.tasks.Go(task)
	}
}
