//go:build race

package rules_test

// raceDetector is set in tests under the race detector, which makes pools
// forget at random and everything slow.
const raceDetector = true
