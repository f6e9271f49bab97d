//go:build !race

package testkit

// Race reports whether the tests run with the race detector; heed is built with it, too, in the
// long form.
const Race = false
