//go:build !race

package testkit

// raceEnabled: heed is built with the race detector when the tests are.
const raceEnabled = false
