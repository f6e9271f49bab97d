package route

import (
	"context"
	"net/http"

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
	if s.own, err = cfg.RobotsSigner(); err != nil {
		return s, err
	}
	s.site, err = cfg.SiteSigning()
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

// signedFetch signs the requests of one fetch, each for the host that it is sent to.
type signedFetch struct {
	guardedFetch
	signing *signing
}

// RoundTrip implements http.RoundTripper.
func (f signedFetch) RoundTrip(r *http.Request) (*http.Response, error) {
	return f.Send(&upstream.Request{Request: r})
}

// Send implements upstream.Sender.
func (f signedFetch) Send(q *upstream.Request) (*http.Response, error) {
	by := f.signing.own
	if as, ok := q.Context().Value(clientKey{}).(*passport.Signer); ok {
		by = as
	}
	if by == nil {
		return f.guardedFetch.Send(q)
	}
	if o, err := rules.OriginOf(q.URL); err == nil {
		if form, signed := f.signing.site(o); signed {
			q.Signer, q.SignForm = by, form
		}
	}
	return f.guardedFetch.Send(q)
}
