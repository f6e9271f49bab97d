package cache

import (
	"fmt"
	"net/http"
	"net/url"

	"heed/rules"
)

// Limits of following redirects. RFC 9309 §2.3.1.2 asks for five hops at least.
const (
	maxRedirects   = 10
	maxLocationLen = 8192
)

// redirects is the way a fetch was sent on. The zero value with from set is
// its start.
type redirects struct {
	from  *url.URL // where the fetch began
	to    string   // the origin last sent to; empty before the first hop
	count int
	seen  map[string]bool
}

func isRedirect(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// follow returns where resp, an answer from u, sends the fetch, or why it is
// not followed. The rules found there apply to the first authority all the
// same (RFC 9309 §2.3.1.2).
func (r *redirects) follow(resp *http.Response, u *url.URL) (*url.URL, error) {
	if r.seen == nil {
		r.seen = map[string]bool{u.String(): true}
	}
	target, err := location(resp, u)
	if err != nil {
		return nil, fmt.Errorf("redirect %d of %s: %w", r.count+1, r.from, err)
	}
	if r.seen[target.String()] {
		return nil, fmt.Errorf("%s: %w", r.from, tell(nil, "redirects in a circle"))
	}
	if r.count == maxRedirects {
		return nil, fmt.Errorf("%s: %w", r.from, tell(nil, "redirects more than %d times", maxRedirects))
	}
	r.count++
	r.seen[target.String()] = true
	r.to = target.Scheme + "://" + target.Host
	return target, nil
}

// explain says of err where the fetch was going, and where the redirects had led it.
func (r *redirects) explain(err error) error {
	if r.count == 0 {
		return fmt.Errorf("fetching %s: %w", r.from, err)
	}
	return fmt.Errorf("fetching %s, redirected to %s: %w", r.from, r.to, err)
}

// location returns where resp points: canonical host, no fragment, no
// credentials, never from https to http.
func location(resp *http.Response, u *url.URL) (*url.URL, error) {
	raw := resp.Header.Get("Location")
	if raw == "" {
		return nil, tell(nil, "redirects without saying where to (status %d without a Location)", resp.StatusCode)
	}
	if len(raw) > maxLocationLen {
		return nil, tell(nil, "redirects to a URL longer than %d octets", maxLocationLen)
	}
	target, err := u.Parse(raw)
	if err != nil {
		return nil, tell(nil, "redirects to what is no valid URL")
	}
	o, err := rules.OriginOf(target)
	if err != nil {
		return nil, tell(err, "redirects to what is no valid URL")
	}
	if u.Scheme == "https" && o.Scheme == "http" {
		return nil, tell(nil, "redirects from https to http, which is not followed")
	}
	target.Scheme, target.Host = o.Scheme, o.Authority()
	target.User, target.Fragment, target.RawFragment = nil, "", ""
	return target, nil
}
