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

// entry is what is known of one origin, for one kind of client. It is immutable.
type entry struct {
	policy *rules.Policy
	// lastGood is the last good copy while policy is not made of it: one that
	// may not be served, or not yet. It may be confirmed all the same.
	lastGood *rules.Policy
	history

	version int64 // under which the fleet has it, or the one it was confirmed of; 0 for none
	seen    int64 // the fleet's version when this was made, where it is not of it; 0 for none
}

// history is what is kept of an entry beside its policies: when the site was
// asked, how it answered, and how long that holds.
type history struct {
	MadeAt time.Time `json:"made"`
	AskAt  time.Time `json:"ask"`  // when the site is asked again
	WaitAt time.Time `json:"wait"` // when callers wait for that; not before AskAt
	// Denied is set while the site's last word on its robots.txt was 401 or
	// 403, Varies while it was that the file depends on the client (Vary:
	// User-Agent): then it is to be asked once more as the client.
	Denied bool `json:"denied,omitzero"`
	Varies bool `json:"varies,omitzero"`

	Failures     int       `json:"failures,omitzero"` // of the same kind, one after the other
	FailingSince time.Time `json:"failing,omitzero"`  // when the first failure was of those in a row; zero without

	// Of the copy:
	Lifetime time.Duration `json:"lifetime,omitzero"` // for a 304 that states none
	Grace    time.Duration `json:"grace,omitzero"`    // likewise
	NoStore  bool          `json:"nostore,omitzero"`  // it must not outlive its lifetime
	validators
}

// validators let a copy be confirmed instead of sent again (RFC 9110 §8.8). They
// are zero when the site gave none.
type validators struct {
	URL          string `json:"url,omitzero"` // the one that gave them, after redirects
	ETag         string `json:"etag,omitzero"`
	LastModified string `json:"modified,omitzero"`
}

// maxValidator is how long an ETag or Last-Modified may be to be kept.
const maxValidator = 1024

// validatorsOf returns what h, an answer from url, gives to ask again with.
func validatorsOf(h http.Header, url string) validators {
	v := validators{URL: url, ETag: h.Get("ETag"), LastModified: h.Get("Last-Modified")}
	if v.ETag == "" && v.LastModified == "" || len(v.ETag) > maxValidator || len(v.LastModified) > maxValidator {
		return validators{}
	}
	return v
}

// answer is what one fetch brought.
type answer struct {
	origin       rules.Origin
	as           string      // the client's User-Agent it was asked as; empty: our own
	hops         []string    // the URLs that were asked, in order
	url          string      // that gave the final answer, the last of hops
	status       int         // of the final answer; 0 when there was none
	header       http.Header // of the final answer
	body         []byte      // decoded, whole lines; only with 200, 203 and 204
	note         string      // for Source.Note
	err          error       // why there is no usable answer; status may be set all the same
	noConnection bool        // the origin itself was never reached
	local        bool        // err is heed's own: the site was not even asked
	release      func()      // gives back what the fetch holds of the bounds; may be nil
}

// done gives back what the fetch still holds of the bounds of all fetches. It
// is called when body is not needed any more.
func (a *answer) done() {
	if a.release != nil {
		a.release()
	}
}

// copy returns the file last read, fresh or stale, or nil. e may be nil.
func (e *entry) copy() *rules.Policy {
	switch {
	case e == nil:
		return nil
	case e.isFile():
		return e.policy
	}
	return e.lastGood
}

// snapshot returns the answer with the file last read, or the last answer if that
// brought no file; nil while the site fails without one.
func (e *entry) snapshot() *rules.Snapshot {
	if e.copy() == nil && e.Failures > 0 {
		return nil
	}
	return cmp.Or(e.copy(), e.policy).Source().Snapshot
}

// isFile reports whether e's policy is made of a file, fresh or stale.
func (e *entry) isFile() bool { return e.policy.Source().State == rules.Available }

// personal reports whether the site may answer each client differently.
func (e *entry) personal() bool { return e.Denied || e.Varies }

// use is what may be done with an entry at a moment.
type use uint8

const (
	expired use = iota // the site is asked, and callers wait
	inGrace            // the entry answers while the site is asked beside it
	fresh              // the entry answers
)

// use returns what may be done with e now. A nil e is due, and so is one made
// before the clock was set back.
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

// fresh reports whether e may be used without asking the site. e may be nil.
func (e *entry) fresh(now time.Time) bool { return e.use(now) == fresh }

// size returns about how many bytes e holds beside itself.
func (e *entry) size() int {
	n := e.policy.Size() + len(e.validators.URL) + len(e.validators.ETag) + len(e.validators.LastModified) +
		errorSize(e.policy.Source().Err)
	if e.lastGood != nil {
		n += e.lastGood.Size()
	}
	return n
}

// errorSize returns about how many bytes an error holds: a failed verification
// holds on to the site's certificates.
func errorSize(err error) int {
	if err == nil {
		return 0
	}
	n := len(err.Error())
	var verification *tls.CertificateVerificationError
	if errors.As(err, &verification) {
		for _, c := range verification.UnverifiedCertificates {
			n += parsedCertificate * len(c.Raw)
		}
	}
	return n
}

// parsedCertificate is about how many times its DER form a certificate takes
// once parsed.
const parsedCertificate = 4

// publicError is an error with a text that clients may read: what the site did.
// Its Error may hold more, also about the network that heed runs in.
type publicError struct {
	text   string
	public string // what robots.txt did, such as "redirects in a circle"
	err    error  // may be nil
}

// publicErrorf returns a publicError whose public text is format with values. Its
// text has that of err behind it, if there is one.
func publicErrorf(err error, format string, values ...any) error {
	e := &publicError{public: fmt.Sprintf(format, values...), err: err}
	if e.text = e.public; err != nil {
		e.text += ": " + err.Error()
	}
	return e
}

// Error returns the whole text.
func (e *publicError) Error() string { return e.text }

// PublicText returns the text for clients: words that follow "robots.txt" in a
// sentence, and that hold nothing a site chose but names of codings.
func (e *publicError) PublicText() string { return e.public }

// Unwrap returns the wrapped error.
func (e *publicError) Unwrap() error { return e.err }

// publicText returns the public text of err; empty when it has none.
func publicText(err error) string {
	var public interface {
		error
		PublicText() string
	}
	if errors.As(err, &public) {
		return public.PublicText()
	}
	return ""
}
