package cache

import (
	"errors"
	"fmt"
)

// told is an error of which something may be told to anybody: what the site
// did. The error itself may say more, also of the network between.
type told struct {
	words string // what robots.txt did, such as "redirects in a circle"
	err   error  // nil: the words say it all
}

// tell returns an error of which may be told that robots.txt did so.
func tell(err error, format string, values ...any) error {
	return &told{fmt.Sprintf(format, values...), err}
}

// Error returns all that is known.
func (t *told) Error() string {
	if t.err == nil {
		return t.words
	}
	return t.words + ": " + t.err.Error()
}

// Told returns what may be told to anybody: words that go on after
// "robots.txt", with nothing in them that a site chose but names of codings.
func (t *told) Told() string { return t.words }

// Unwrap returns what is behind it.
func (t *told) Unwrap() error { return t.err }

// wordsToTell returns what may be told of err; empty when there is nothing.
func wordsToTell(err error) string {
	var t interface {
		error
		Told() string
	}
	if errors.As(err, &t) {
		return t.Told()
	}
	return ""
}

// retold is an error of a former process: its text, and what may be told of it.
type retold struct{ text, words string }

// Error returns the text.
func (r *retold) Error() string { return r.text }

// Told returns what may be told to anybody; see told.
func (r *retold) Told() string { return r.words }
