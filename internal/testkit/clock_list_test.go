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
	"cache/cache_test.go TestCache_AFailingSiteIsLeftAlone":                "fake: RetryAt by the clock of the test",
	"cache/cache_test.go TestCache_ASiteThatComesUpIsNoticedWithinSeconds": "fake: RetryAt by the clock of the test",
	"cache/fleet_test.go seat.end":                                         "setting: how long the store keeps a policy",
	"cache/limiter_test.go enter":                                          "fake: runs in bubbles",
	"cache/origins_test.go TestHeed_OriginsThatMisbehave":                  "fake: RetryAt by the clock of the test; a limit of 5 s that silent sites reach",
	"cache/origins_test.go TestHeed_OriginsThatMisbehaveInTLS":             "loop: a limit that a silent site reaches, tried again until it does in the handshake",
	"cache/outcome_test.go TestCache_FetchesAndPoliciesAreCounted":         "least: a fetch takes some time",
	"cache/stale_test.go TestPolicy_AFailingSiteIsAskedEverMoreSeldom":     "fake: RetryAt by the clock of the test",
	"cache/stale_test.go TestPolicy_HowLongAnEntryAnswersPastItsTime":      "fake: times that are computed from a header",
	"cache/state_test.go TestState_RetriesStayWithinTheirLimits":           "fake: times that are computed from the number of failures",
	"rules/cost_linux_test.go times":                                       "ratio: what a step costs",

	// internal, without the folders below
	"internal/access/gate_test.go TestHeed_GuessesFromOneNetworkCountTogether":              "setting: the wait after too many guesses",
	"internal/access/gate_test.go TestHeed_WhoKeepsFailingHasToWait":                        "fake: the wait by the clock of the test",
	"internal/accesslog/order_test.go sorted":                                               "setting: times of lines",
	"internal/admin/admin_test.go newRig":                                                   "loop: ends the server after the test",
	"internal/admin/dashboard/stream_test.go stuck.Write":                                   "loop: a write that ends at its deadline",
	"internal/audit/ended_test.go TestHeed_LinesWaitForFlush":                               "least: a time is between two readings of the clock, however far apart",
	"internal/audit/replay/explain_test.go TestHeed_DecisionsAreFound":                      "setting: times of decisions",
	"internal/audit/replay/explain_test.go TestHeed_SeveralRecordsAreListedAsOne":           "setting: times of decisions",
	"internal/audit/replay/explain_test.go TestHeed_TheLastDecisionOnAURLIsPrinted":         "setting: times of decisions",
	"internal/audit/store/search_test.go TestSearch_TotalsAreThoseOfTheRequests":            "setting: the length of a period",
	"internal/audit/store/trouble_test.go TestHeed_WhatCannotBeRecordedIsRefusedUntilItCan": "least: a gap of the record begins before it ends",
	"internal/ca/leaf_test.go TestLeafStaysWithinItsAuthoritysTime":                         "setting: the validity of a certificate",
	"internal/console/async_test.go TestHeed_LinesOfABusyLogShareWrites":                    "least: two writes are a time apart",
	"internal/daemon/grants_test.go TestHeed_PatternsAndTimesOfGrants":                      "setting: the length of a grant",
	"internal/daemon/supervise_test.go TestAnswers":                                         "loop: ends the wait for a listener that never answers",
	"internal/daemon/supervise_test.go TestHeed_ReportsItsLifeToTheServiceManager":          "setting: the time to stop that heed asks for",
	"internal/daemon/supervise_test.go TestHeed_ThatHangsGivesNoSignOfLife":                 "loop: ends the wait for a listener that never answers",
	"internal/signal/licence/licence_test.go FuzzParse":                                     "setting: how long a licence is kept",
	"internal/study/generate_test.go truth.note":                                            "fake: times of generated lines",
	"internal/study/generate_test.go visit.target":                                          "fake: times of generated lines",
	"internal/study/generate_test.go visits.Less":                                           "fake: times of generated lines",
	"internal/study/scale_test.go TestStudy_ManyLinesTakeLinearTimeAndBoundedMemory":        "ratio: CPU time of ten times the lines",

	// internal/fleet, internal/pace, internal/command, internal/bench

	// internal/testkit
	"internal/testkit/clock_test.go clockCheck.isShort": "setting: the constants of the tests that are looked at",

	// proxy
}
