package route

import (
	"context"

	"heed/cache"
	"heed/internal/config"
	"heed/internal/passport"
	"heed/proxy/upstream"
	"heed/rules"
)

// signing is how heed's own requests are signed: with a key of heed's own, or, as far as they
// are made as a client, as the requests of this client.
type signing struct {
	own  *passport.Signer // nil: those that are made as heed itself are not signed
	site func(rules.Origin) (form passport.Form, signed bool)
}

// newSigning reads the key of robots.sign.
func newSigning(cfg *config.Config) (s signing, err error) {
	s.site = cfg.SiteSigning()
	s.own, err = cfg.RobotsSigner()
	return s, err
}

// Signer returns what signs heed's own requests; nil when they are not signed.
func (p *Pool) Signer() *passport.Signer { return p.signing.own }

// clientKey is the context key of the *passport.Signer of the client that a request is made
// as; nil: the requests of this client are not signed.
type clientKey struct{}

// clientSigner implements cache.Config.Signer.
func clientSigner(ctx context.Context) cache.Signer {
	if s := upstream.SignerOf(ctx); s != nil {
		return s
	}
	return nil
}

// signAs implements cache.Config.Sign.
func signAs(to context.Context, as cache.Signer) context.Context {
	s, _ := as.(*passport.Signer)
	return context.WithValue(to, clientKey{}, s)
}

// sign has q signed for the site at o.
func (s *signing) sign(q *upstream.Request, o rules.Origin) {
	by := s.own
	if as, ok := q.Context().Value(clientKey{}).(*passport.Signer); ok {
		by = as
	}
	if by == nil {
		return
	}
	if form, signed := s.site(o); signed {
		q.Signer, q.SignForm = by, form
	}
}
