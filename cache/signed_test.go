package cache

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"heed/internal/tools/testkit/must"
	"heed/rules"
)

type testSigner string

func (s testSigner) ID() string { return string(s) }

type clientKey struct{}

type signKey struct{}

// signedScene is a scene whose requests are signed as those of the client whose context
// contains a signer; the field Signed names it.
func signedScene(t *testing.T) *scene {
	return sceneOf(t, Config{
		UserAgent: "heed/1.0",
		Signer: func(ctx context.Context) Signer {
			if by, ok := ctx.Value(clientKey{}).(testSigner); ok {
				return by
			}
			return nil
		},
		Sign: func(to context.Context, by Signer) context.Context { return context.WithValue(to, signKey{}, by) },
	})
}

// as returns the verdict on /private/x for a client, and what the site was asked for it.
func (s *scene) as(userAgent, signer string) string {
	s.t.Helper()
	before := s.count()
	ctx := s.t.Context()
	if signer != "" {
		ctx = context.WithValue(ctx, clientKey{}, testSigner(signer))
	}
	p := s.cache.Policy(ctx, site, userAgent)
	out := p.Decide(rules.Identify(userAgent), rules.NewTarget("/private/x")).Verdict.String()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.asked[before:] {
		out += fmt.Sprintf(", %s%s by %q", r.UserAgent(), strings.TrimPrefix(r.URL.String(), "https://site.test"), r.Header.Get("Signed"))
	}
	return out
}

// The answer to a request that was made as a signed client holds for this client alone: not
// for another with its name, and not for one that another key signs.
func TestPolicy_AnAnswerToASignatureIsKeptForItAlone(t *testing.T) {
	t.Parallel()
	s := signedScene(t)
	s.turn(func(r *http.Request) (*http.Response, error) {
		if r.Header.Get("Signed") == "news" {
			return reply(200), nil
		}
		return reply(403), nil
	})
	for i, c := range []struct{ userAgent, signer, want string }{
		{"NewsBot/1", "", `allow, heed/1.0/robots.txt by "", NewsBot/1/robots.txt by ""`},
		{"NewsBot/1", "news", `refuse, NewsBot/1/robots.txt by "news"`},
		{"NewsBot/2", "news", `refuse`},
		{"NewsBot/1", "", `allow`},
		{"NewsBot/1", "other", `allow, NewsBot/1/robots.txt by "other"`},
		{"NewsBot/1", "news", `refuse`},
	} {
		must.Equal(t, s.as(c.userAgent, c.signer), c.want, "%d. %s by %q", i+1, c.userAgent, c.signer)
	}
	kept := map[string]bool{}
	for info := range s.cache.List() {
		kept[info.For] = true
	}
	must.Equal(t, fmt.Sprint(kept), "map[:true newsbot:true newsbot, signed by news:true newsbot, signed by other:true]", "kept for %v", kept)
}

// The signature of a client is on what is requested as the client: not on the robots.txt of a
// host that the site redirects to, which heed requests for itself.
func TestPolicy_WhatHeedRequestsForItselfIsNotSignedForAClient(t *testing.T) {
	t.Parallel()
	s := signedScene(t)
	s.turn(func(r *http.Request) (*http.Response, error) {
		switch {
		case r.URL.Host == "other.test" && r.URL.Path == "/robots.txt":
			return reply(404), nil
		case r.URL.Host == "other.test":
			return reply(200), nil
		case r.UserAgent() == "NewsBot/1":
			return reply(302, "Location", "https://other.test/rules"), nil
		}
		return reply(403), nil
	})
	want := `refuse, heed/1.0/robots.txt by "", NewsBot/1/robots.txt by "news", heed/1.0https://other.test/robots.txt by "", NewsBot/1https://other.test/rules by "news"`
	must.Equal(t, s.as("NewsBot/1", "news"), want)
	want = `refuse, NewsBot/1/robots.txt by "", NewsBot/1https://other.test/rules by ""`
	must.Equal(t, s.as("NewsBot/1", ""), want, "the answer to the visit of another")
}
