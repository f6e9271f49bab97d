// Package must has what tests say most. An error that a test does not expect ends it:
// must.OK(t, f()) where a call returns an error alone, must.Get(f())(t) for the value before
// it. must.Equal compares, and the test goes on.
package must

import (
	"fmt"
	"strings"
	"testing"
)

// OK ends the test at err, unless that is nil.
func OK(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Get returns what a call returned before its error, and ends the test at that.
func Get[A any](a A, err error) func(testing.TB) A {
	return func(t testing.TB) A {
		t.Helper()
		OK(t, err)
		return a
	}
}

// Two is Get for two values.
func Two[A, B any](a A, b B, err error) func(testing.TB) (A, B) {
	return func(t testing.TB) (A, B) {
		t.Helper()
		OK(t, err)
		return a, b
	}
}

// Equal says that got is not want, and the test goes on. What it was is said first: a text,
// or the format and the arguments of one.
func Equal[V comparable](t testing.TB, got, want V, what ...any) {
	t.Helper()
	if got == want {
		return
	}
	said, form := "", "%sgot %+v, want %+v"
	if len(what) == 1 {
		said = fmt.Sprint(what[0], ": ")
	} else if len(what) > 1 {
		said = fmt.Sprintf(what[0].(string)+": ", what[1:]...)
	}
	if text := fmt.Sprint(got, want); strings.Contains(text, "\n") {
		form = "%s\ngot\n%+v\nwant\n%+v"
	} else if _, ok := any(got).(string); ok {
		form = "%sgot %q, want %q"
	}
	t.Errorf(form, said, got, want)
}
