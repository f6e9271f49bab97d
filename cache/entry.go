package cache

import (
	"net/http"
	"time"

	"heed/rules"
)

// entry is what is known of one origin, for one way of asking. It is immutable.
type entry struct {
	// The first six are read with every request, and lie together for it.
	policy *rules.Policy
	madeAt time.Time
	askAt  time.Time // when the site is asked again
	waitAt time.Time // when callers wait for that; not before askAt
	// denied is set while the site's last word on its robots.txt was 401 or
	// 403, varies while it was that the file depends on who asks (Vary:
	// User-Agent): then it is to be asked once more as the client.
	denied, varies bool

	version int64 // under which the fleet has it, or the one it was confirmed of; 0 for none
	seen    int64 // the fleet's version when this was made, where it is not of it; 0 for none

	failures     int       // of the same kind, one after the other
	failingSince time.Time // when the first failure was of those in a row; zero without
	// setAside is the last good copy while policy is not made of it: one that
	// may not stand in, or not yet. It may be confirmed all the same.
	setAside *rules.Policy

	// Of the copy:
	lifetime time.Duration // for a 304 that states none
	grace    time.Duration // likewise
	noStore  bool          // it must not outlive its lifetime
	tags     validators    // zero when it has none
}

// validators let a copy be confirmed instead of sent again (RFC 9110 §8.8).
type validators struct {
	url          string // the one that gave them, after redirects
	etag         string
	lastModified string
}

// maxValidator is how long an ETag or Last-Modified may be to be kept.
const maxValidator = 1024

// validatorsOf returns what h, an answer from url, gives to ask again with.
func validatorsOf(h http.Header, url string) validators {
	v := validators{url: url, etag: h.Get("ETag"), lastModified: h.Get("Last-Modified")}
	if v.etag == "" && v.lastModified == "" || len(v.etag) > maxValidator || len(v.lastModified) > maxValidator {
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
	ours         bool        // err is heed's own: the site was not even asked
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
	return e.setAside
}

// isFile reports whether e's policy is made of a file, fresh or stale.
func (e *entry) isFile() bool { return e.policy.Source().State == rules.Available }

// personal reports whether the site may tell each client something else.
func (e *entry) personal() bool { return e.denied || e.varies }

// use is what may be done with an entry at a moment.
type use uint8

const (
	due    use = iota // the site is asked, and callers wait
	graced            // the entry answers while the site is asked beside it
	fresh             // the entry answers
)

// use returns what may be done with e now. A nil e is due, and so is one made
// before the clock was set back.
func (e *entry) use(now time.Time) use {
	switch {
	case e == nil || e.madeAt.Sub(now) > clockSlack:
		return due
	case now.Before(e.askAt):
		return fresh
	case now.Before(e.waitAt):
		return graced
	}
	return due
}

// fresh reports whether e may be used without asking the site. e may be nil.
func (e *entry) fresh(now time.Time) bool { return e.use(now) == fresh }
