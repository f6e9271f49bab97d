package fleet

import (
	"errors"
	"slices"
)

// ErrOtherStore is the error of Renew.
var ErrOtherStore = errors.New("the URL names another store than before")

// Renew returns a function that makes new connections use the credentials, the roots and
// the certificate of options; those that are open stay. The error is ErrOtherStore when
// the URL differs in anything else, or says what is wrong with it.
func (s *Store) Renew(options Options) (use func(), err error) {
	o, err := parseURL(&options)
	if err != nil {
		return nil, err
	}
	was := s.access.Load()
	same := slices.Equal(o.Addrs, was.Addrs) && o.MasterName == was.MasterName && o.DB == was.DB && o.IsClusterMode == was.IsClusterMode
	if !same || (o.TLSConfig == nil) != (was.TLSConfig == nil) {
		return nil, ErrOtherStore
	}
	return func() { s.access.Store(o) }, nil
}
