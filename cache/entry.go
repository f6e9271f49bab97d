package cache

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"time"

	"heed/rules"
)

// entry is the cached state of one origin for one kind of client. It is immutable.
type entry struct {
	policy *rules.Policy
	// lastGood is the last good copy while policy is not made from it: a copy that may not be
	// served, or not yet. A 304 can still confirm it.
	lastGood *rules.Policy
	history

	version int64 // in the store of the fleet; 0: none
	seen    int64 // the version in the fleet's store when this entry was made without it; 0: none
}

// history is stored with the policies of an entry: when the site was requested, how it
// answered, and how long that is valid.
type history struct {
	MadeAt time.Time `json:"made"`
	AskAt  time.Time `json:"ask"`  // when the site is requested again
	WaitAt time.Time `json:"wait"` // when callers wait for that; not before AskAt
	// Denied is set while the site's last answer was 401 or 403, Varies while it stated that
	// the file depends on the client (Vary: User-Agent). In both cases the site is requested
	// again under the client's name.
	Denied bool `json:"denied,omitzero"`
	Varies bool `json:"varies,omitzero"`

	Failures     int       `json:"failures,omitzero"` // consecutive ones of the same kind
	FailingSince time.Time `json:"failing,omitzero"`  // time of the first of them; zero: none

	// Of the copy:
	Lifetime time.Duration `json:"lifetime,omitzero"` // for a 304 that states none
	Grace    time.Duration `json:"grace,omitzero"`    // likewise
	NoStore  bool          `json:"nostore,omitzero"`  // it must not outlive its lifetime
	validators
}

// validators make a request conditional, so that a copy can be confirmed (RFC 9110 §8.8). They
// are zero when the site sent none.
type validators struct {
	URL          string `json:"url,omitzero"` // of the answer that had them, after redirects
	ETag         string `json:"etag,omitzero"`
	LastModified string `json:"modified,omitzero"`
}

// maxValidator is the maximum length of an ETag or Last-Modified that is stored.
const maxValidator = 1024

// validatorsOf returns the validators in h, the header of an answer from url.
func validatorsOf(h http.Header, url string) validators {
	v := validators{URL: url, ETag: h.Get("ETag"), LastModified: h.Get("Last-Modified")}
	if v.ETag == "" && v.LastModified == "" || len(v.ETag) > maxValidator || len(v.LastModified) > maxValidator {
		return validators{}
	}
	return v
}

// answer is the result of one fetch.
type answer struct {
	siteReply    // the final one; err is also why there is none
	origin       rules.Origin
	as           string   // the client's User-Agent that was sent; empty: heed's own
	hops         []string // the URLs that were requested, in order
	url          string   // of the final answer, the last of hops
	noConnection bool     // the origin itself was never reached
}

// copy returns the file that was read last, fresh or stale, or nil. e may be nil.
func (e *entry) copy() *rules.Policy {
	switch {
	case e == nil:
		return nil
	case e.isFile():
		return e.policy
	}
	return e.lastGood
}

// snapshot returns the answer with the file that was read last, or the last answer if there is
// no such file; nil while the site fails without one.
func (e *entry) snapshot() *rules.Snapshot {
	if e.copy() == nil && e.Failures > 0 {
		return nil
	}
	return cmp.Or(e.copy(), e.policy).Source().Snapshot
}

// isFile reports whether e's policy is made from a file, fresh or stale.
func (e *entry) isFile() bool { return e.policy.Source().State == rules.Available }

// personal reports whether the site may answer each client differently.
func (e *entry) personal() bool { return e.Denied || e.Varies }

// use is whether an entry may be used at a given time.
type use uint8

const (
	expired use = iota // the site is requested, and callers wait
	inGrace            // the entry is used while the site is requested in the background
	fresh              // the entry is used
)

// use returns whether e may be used now. A nil e is expired, and so is one from before the
// clock was set back.
func (e *entry) use(now time.Time) use {
	switch {
	case e == nil || e.MadeAt.Sub(now) > clockSlack:
		return expired
	case now.Before(e.AskAt):
		return fresh
	case now.Before(e.WaitAt):
		return inGrace
	}
	return expired
}

// fresh reports whether e may be used without a request to the site. e may be nil.
func (e *entry) fresh(now time.Time) bool { return e.use(now) == fresh }

// size returns about how many octets e holds, itself excluded.
func (e *entry) size() int {
	n := e.policy.Size() + len(e.validators.URL) + len(e.validators.ETag) + len(e.validators.LastModified) +
		errorSize(e.policy.Source().Err)
	if e.lastGood != nil {
		n += e.lastGood.Size()
	}
	return n
}

// errorSize returns about how many octets an error holds: a failed verification contains the
// site's certificates.
func errorSize(err error) int {
	if err == nil {
		return 0
	}
	n := len(err.Error())
	if verification, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		for _, c := range verification.UnverifiedCertificates {
			n += parsedCertificate * len(c.Raw)
		}
	}
	return n
}

// parsedCertificate is the size of a parsed certificate as a multiple of its DER form,
// roughly.
const parsedCertificate = 4

// publicError is an error with a text for clients, which contains only what the site did.
// Error may contain more, also about the network of heed.
type publicError struct {
	text   string
	public string // follows "robots.txt", such as "redirects in a circle"
	err    error  // may be nil
}

// publicErrorf returns a publicError with the formatted public text. Its Error appends the
// text of err, if there is one.
func publicErrorf(err error, format string, values ...any) error {
	e := &publicError{public: fmt.Sprintf(format, values...), err: err}
	if e.text = e.public; err != nil {
		e.text += ": " + err.Error()
	}
	return e
}

// Error returns the public text and that of the wrapped error.
func (e *publicError) Error() string { return e.text }

// PublicText returns the text for clients. It follows the word "robots.txt" in a sentence, and
// contains nothing that a site chose except names of codings.
func (e *publicError) PublicText() string { return e.public }

// Unwrap returns the wrapped error.
func (e *publicError) Unwrap() error { return e.err }
