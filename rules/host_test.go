package rules

import (
	"testing"

	"heed/internal/tools/testkit/must"
)

func policyOf(text string) *Policy {
	o := Origin{Scheme: "https", Host: "site.test", Port: 443}
	return New(Source{Origin: o, State: Available}, []byte(text))
}

// A tunnel's host is refused only to an agent that the file disallows everything;
// the other rules of the file are counted as not seen.
func TestHeed_AHostIsJudgedByWhatHoldsForAllOfIt(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, file, userAgent string
		verdict               Verdict
		line, unseen          int
	}{
		{"barred", "User-agent: *\nDisallow: /\n", "A/1", Refuse, 2, 0},
		{"barred by a star", "User-agent: *\nDisallow: *\n", "A/1", Refuse, 2, 0},
		{"barred by a slash and a star", "User-agent: *\nDisallow: /x\nDisallow: /*\n", "A/1", Refuse, 3, 0},
		{"barred to the end", "User-agent: *\nDisallow: /*$\n", "A/1", Refuse, 2, 0},
		{"the front page alone", "User-agent: *\nDisallow: /$\n", "A/1", Allow, 0, 1},
		{"an exception", "User-agent: *\nDisallow: /\nAllow: /open/\n", "A/1", Allow, 0, 1},
		{"paths", "User-agent: *\nDisallow: /a\nDisallow: /b\nAllow: /a/c\n", "A/1", Allow, 0, 2},
		{"nothing", "User-agent: *\nDisallow:\n", "A/1", Allow, 0, 0},
		{"allowed", "User-agent: *\nAllow: /\n", "A/1", Allow, 0, 0},
		{"no group", "User-agent: B\nDisallow: /\n", "A/1", Allow, 0, 0},
		{"its own group", "User-agent: *\nDisallow: /\nUser-agent: A\nDisallow: /p\n", "A/1", Allow, 0, 1},
		{"barred by name", "User-agent: *\nAllow: /\nUser-agent: A\nDisallow: /\n", "A/1", Refuse, 4, 0},
		{"two names, one barred", "User-agent: B\nAllow: /\nUser-agent: A\nDisallow: /\n", "B/1 A/1", Refuse, 4, 0},
		{"no name", "User-agent: *\nDisallow: /\n", "", Refuse, 2, 0},
	}
	for _, c := range cases {
		d, unseen := policyOf(c.file).DecideHost(Identify(c.userAgent))
		must.True(t, d.Verdict == c.verdict && d.Line == c.line && unseen == c.unseen && d.Reason == ReasonHostOnly,
			"%s: %+v, %d unseen", c.name, d, unseen)
	}
	for state, want := range map[State]Decision{
		Unavailable: {Verdict: Allow, Reason: ReasonRobotsUnavailable},
		Unreachable: {Verdict: Refuse, Reason: ReasonRobotsUnreachable},
	} {
		d, unseen := New(Source{State: state}, nil).DecideHost(nil)
		must.True(t, d == want && unseen == 0, "state %d: %+v", state, d)
	}
}
