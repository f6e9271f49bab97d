package admin

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// Bounds of a Server.
const (
	maxHeader     = 32 << 10 // octets of the head of a request
	maxBody       = 64 << 10 // octets of the body of a request
	maxConns      = 1280     // simultaneous connections; further ones are closed
	headerTimeout = 10 * time.Second
	idleTimeout   = time.Minute
	// writeTimeout is how long one answer may take, unless its handler extends it.
	writeTimeout = 30 * time.Second
)

// Settings are what a reload can change. They are immutable.
type Settings struct {
	Hosts   []string // further names of the listener, in lower case
	Token   string   // accepted as a bearer token, or as the password of any user; empty: none
	Users   Users    // nil: none
	Actions bool     // requests with credentials may change the running heed
	Pprof   bool     // /debug/pprof/ is served
}

// Config configures a Server. Live and Health must not be nil.
type Config struct {
	Live func() *Settings // the current settings; it must be fast
	// Health returns why heed serves no requests, and further problems that an operator should see.
	Health func() (notReady, unwell []string)

	Metrics   http.Handler // of /metrics and the paths below it
	Dashboard http.Handler // of every path that is not the server's own

	// ProxyName is the name of this heed in Via. Requests that came through heed are
	// refused. Empty: none are recognized by it.
	ProxyName string

	// Log takes what is not about a single request. Nil discards.
	Log *slog.Logger
}

// Server serves the admin listener. Make it with New.
type Server struct {
	config Config
	http   http.Server
	mux    http.Handler // of the paths other than those of health
	conns  atomic.Int64
}

// New returns a server for c.
func New(c Config) *Server {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{config: c}
	s.mux = s.routes()
	s.http = http.Server{
		Handler:           http.HandlerFunc(s.handle),
		Protocols:         new(http.Protocols),
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, arrivedKey{}, c.LocalAddr())
		},
		ConnState: s.bound,
		ErrorLog:  slog.NewLogLogger(c.Log.Handler(), slog.LevelDebug), // about broken connections
	}
	s.http.Protocols.SetHTTP1(true)
	return s
}

// arrivedKey is the context key of the address that a connection came to.
type arrivedKey struct{}

// Serve answers requests on l until Shutdown, then returns nil. It closes l.
func (s *Server) Serve(l net.Listener) error {
	if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Shutdown accepts no more connections, waits for answers until ctx ends, and closes the
// rest.
func (s *Server) Shutdown(ctx context.Context) {
	if s.http.Shutdown(ctx) != nil {
		s.http.Close()
	}
}

// bound closes connections beyond maxConns as soon as they are accepted.
func (s *Server) bound(c net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		if s.conns.Add(1) > maxConns {
			c.Close()
		}
	case http.StateClosed:
		s.conns.Add(-1)
	}
}
