// Package seal tests that a sealed run has no network exit but heed: attempts to reach a
// web server and other services of the machine from inside, each listed with its result.
package seal
