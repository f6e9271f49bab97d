// Package must ends a test at an error that the test does not expect: must.OK(t, f()) where
// a call returns an error alone, must.Get(f())(t) for the value before it.
package must

import "testing"

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
