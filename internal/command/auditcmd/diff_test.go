package auditcmd

import (
	"bytes"
	"strings"
	"testing"

	"heed/internal/audit/compare"
	"heed/internal/output/console"
)

// Two records without a request in common have two agents more often than two crawls: the
// flag that compares them is named.
func TestDiffNamesIgnoreAgentWhereNothingIsInBoth(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		both      int64
		byVerdict bool
		want      bool
	}{{0, false, true}, {0, true, false}, {1, false, false}} {
		r := &compare.Result{Both: c.both, OnlyA: make([]compare.Single, 1), OnlyB: make([]compare.Single, 1)}
		var out bytes.Buffer
		if err := printDiff(&out, console.Colours(nil, &out), r, c.byVerdict); err != nil || strings.Contains(out.String(), "; --ignore-agent leaves the agent out\n") != c.want {
			t.Errorf("%+v: %v\n%s", c, err, out.String())
		}
	}
}
