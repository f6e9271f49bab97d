// Package must has what tests say most. An error that a test does not expect ends it:
// must.OK(t, f()) where a call returns an error alone, must.Get(f())(t) for the value before
// it. must.Equal and the others compare, and the test goes on; must.True does for a condition
// of any kind. must.Is and must.Need end the test.
package must

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

// OK ends the test at err, unless that is nil. What failed is said first, as in Equal.
func OK(t testing.TB, err error, what ...any) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s%v", said(what), err)
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

// Err returns the error of a call that returns a value too, which is not looked at.
func Err[A any](_ A, err error) error { return err }

// Fail says that err is nil or has no part in its text, and the test goes on.
func Fail(t testing.TB, err error, part string, what ...any) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), part) {
		t.Errorf("%sgot the error %v, want one with %q", said(what), err, part)
	}
}

// True says the text, as Printf formats it, unless ok; the test goes on.
func True(t testing.TB, ok bool, format string, args ...any) {
	if !ok {
		t.Helper()
		t.Errorf(format, args...)
	}
}

// Need is True for what the rest of a test needs: the test ends.
func Need(t testing.TB, ok bool, format string, args ...any) {
	if !ok {
		t.Helper()
		t.Fatalf(format, args...)
	}
}

// Equal says that got is not want, and the test goes on. What it was is said first: a text,
// or the format and the arguments of one.
func Equal[V comparable](t testing.TB, got, want V, what ...any) {
	t.Helper()
	if got != want {
		differ(t, got, want, what)
	}
}

// Is is Equal for what the rest of a test needs: the test ends.
func Is[V comparable](t testing.TB, got, want V, what ...any) {
	t.Helper()
	if got != want {
		differ(t, got, want, what)
		t.FailNow()
	}
}

// Same is Equal for what has parts: slices, maps. None is the same as an empty one.
func Same[V any](t testing.TB, got, want V, what ...any) {
	t.Helper()
	g, w := reflect.ValueOf(got), reflect.ValueOf(want)
	if k := g.Kind(); (k == reflect.Slice || k == reflect.Map) && g.Len()+w.Len() == 0 {
		return
	}
	if !reflect.DeepEqual(got, want) {
		differ(t, got, want, what)
	}
}

// Status says that an answer has another status than want.
func Status(t testing.TB, got *http.Response, want int, what ...any) {
	t.Helper()
	if got.StatusCode != want {
		t.Errorf("%s%s, want %d", said(what), got.Status, want)
	}
}

// Contain says that there is no part in text.
func Contain(t testing.TB, text, part string, what ...any) {
	t.Helper()
	if !strings.Contains(text, part) {
		t.Errorf("%sthere is no %q in\n%s", said(what), part, text)
	}
}

// Lack says that there is a part in text.
func Lack(t testing.TB, text, part string, what ...any) {
	t.Helper()
	if strings.Contains(text, part) {
		t.Errorf("%sthere is %q in\n%s", said(what), part, text)
	}
}

func differ(t testing.TB, got, want any, what []any) {
	t.Helper()
	form := "%sgot %+v, want %+v"
	if strings.Contains(fmt.Sprint(got, want), "\n") {
		form = "%sgot\n%+v\nwant\n%+v"
	} else if _, ok := got.(string); ok {
		form = "%sgot %q, want %q"
	}
	t.Errorf(form, said(what), got, want)
}

func said(what []any) string {
	switch len(what) {
	case 0:
		return ""
	case 1:
		return fmt.Sprint(what[0], ": ")
	}
	return fmt.Sprintf(what[0].(string)+": ", what[1:]...)
}
