package fleet

import (
	"crypto/tls"
	"errors"
	"slices"

	"github.com/redis/go-redis/v9"
)

// access is what new connections to a store use: credentials and TLS.
type access struct {
	user, password                 string
	sentinelUser, sentinelPassword string
	tls                            *tls.Config // nil: without TLS
}

// newAccess returns the access of o, with the roots and the certificate of options.
func newAccess(o *redis.UniversalOptions, options *Options) *access {
	a := &access{
		user: o.Username, password: o.Password, sentinelUser: o.SentinelUsername, sentinelPassword: o.SentinelPassword,
		tls: o.TLSConfig,
	}
	if a.tls != nil && options.Certificate != nil {
		a.tls.Certificates = []tls.Certificate{*options.Certificate}
	}
	return a
}

// ErrOtherStore is the error of Renew.
var ErrOtherStore = errors.New("the URL names another store than before")

// Renew returns a function that makes new connections use the credentials, the roots and
// the certificate of options; those that are open stay. The error is ErrOtherStore when
// the URL differs in anything else, or says what is wrong with it.
func (s *Store) Renew(options Options) (use func(), err error) {
	o, err := parseURL(options.URL, options.RootCAs)
	if err != nil {
		return nil, err
	}
	a := newAccess(o, &options)
	was := s.target
	same := slices.Equal(o.Addrs, was.Addrs) && o.MasterName == was.MasterName && o.DB == was.DB && o.IsClusterMode == was.IsClusterMode
	if !same || (a.tls == nil) != (s.access.Load().tls == nil) {
		return nil, ErrOtherStore
	}
	return func() { s.access.Store(a) }, nil
}
