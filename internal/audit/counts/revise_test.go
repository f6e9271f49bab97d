package counts

import (
	"testing"

	"heed/internal/audit"
	"heed/internal/judge/reason"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// A tunnel that was opened for its host, or unseen, and closed for what came
// through it is one request: its shares are those of a request refused.
func TestHeed_ATunnelThatTurnsOutBadCountsOnce(t *testing.T) {
	for judged, first := range map[audit.Judged]rules.Reason{audit.ByHost: rules.ReasonHostOnly, audit.NotJudged: rules.ReasonTunnel} {
		for last, verdict := range []rules.Verdict{rules.Refuse, rules.WouldRefuse} {
			var tally Tally
			opened := asked("a.test", rules.Decision{Verdict: rules.Allow, Reason: first})
			opened.Method, opened.Judged = "CONNECT", judged
			bad := asked("a.test", rules.Decision{Verdict: verdict, Reason: rules.ReasonHostMismatch})
			bad.Method, bad.Judged = "CONNECT", judged
			bad.Revises, opened.Outcome.Revision = &opened.ID, bad
			end(&tally, bad, opened)

			want := Counts{Requests: 1, NotJudged: 1, Classes: reason.Counts{reason.NotJudged: 1}}
			if judged == audit.ByHost {
				want = [...]Counts{{Requests: 1, ByHost: 1, Refused: 1}, {Requests: 1, ByHost: 1, WouldRefuse: 1}}[last]
				want.Classes = reason.Counts{reason.NotJudged: 1} // by neither rules nor settings
			}
			s := tally.Summary()
			must.True(t, s.Counts == want && s.Hosts[0].Counts == want,
				"%v, %v: counted %+v and %+v, want %+v", judged, verdict, s.Counts, s.Hosts[0].Counts, want)
			if judged == audit.ByHost && (len(s.Unjudged) != 0 || len(s.Refusals) != 1 || s.Refusals[0].Reason != rules.ReasonHostMismatch) ||
				judged == audit.NotJudged && (len(s.Refusals) != 0 || len(s.Unjudged) != 1 || s.Unjudged[0].Reason != rules.ReasonHostMismatch) {
				t.Errorf("%v, %v: refusals %+v, not judged %+v", judged, verdict, s.Refusals, s.Unjudged)
			}
		}
	}
}
