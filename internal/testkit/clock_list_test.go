package testkit

// timeCompared are the functions of tests that may compare times or wait with a limit,
// by file and name, each with the reason why its verdict is the same on a busy machine:
//
//   - fake: the times are those of a fake clock, or of values that nothing measured;
//   - least: a real gap must not be shorter, however busy the machine is;
//   - setting: a setting or a time of day is looked at, not how long something took;
//   - ratio: CPU time of a thread, as a ratio to that of a reference measured in turn with it;
//   - loop: it ends or paces what the test does, and the verdict does not depend on it.
var timeCompared = map[string]string{
	// rules, cache, main
	"rules/cost_linux_test.go times": "ratio: what a step costs",

	// internal, without the folders below

	// internal/fleet, internal/pace, internal/command, internal/bench

	// internal/testkit
	"internal/testkit/clock_test.go clockCheck.isShort": "setting: the constants of the tests that are looked at",

	// proxy
}
