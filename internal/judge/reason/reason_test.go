package reason_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"heed/internal/judge/reason"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// constants returns the constants of type Reason in rules/decide.go.
func constants(t *testing.T) (all []rules.Reason) {
	t.Helper()
	f := must.Get(parser.ParseFile(token.NewFileSet(), "../../../rules/decide.go", nil, 0))(t)
	ast.Inspect(f, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if name, ok := v.Type.(*ast.Ident); ok && name.Name == "Reason" {
			value := must.Get(strconv.Unquote(v.Values[0].(*ast.BasicLit).Value))(t)
			all = append(all, rules.Reason(value))
		}
		return true
	})
	return all
}

func TestEveryReasonHasARow(t *testing.T) {
	t.Parallel()
	all := constants(t)
	if len(all) < 29 {
		t.Fatalf("rules/decide.go has %d reasons; the test does not find all of them", len(all))
	}
	var rows []rules.Reason
	for _, info := range reason.All() {
		rows = append(rows, info.Reason)
	}
	slices.Sort(all)
	if !slices.Equal(rows, all) {
		t.Errorf("the reasons with a row are\n%v\nand those of the code are\n%v", rows, all)
	}
}

func TestEveryRowIsComplete(t *testing.T) {
	t.Parallel()
	for _, info := range reason.All() {
		if info.Status < 400 || http.StatusText(info.Status) == "" {
			t.Errorf("%s: status %d", info.Reason, info.Status)
		}
		if info.Error == "" && info.Reason != rules.ReasonCredentials {
			t.Errorf("%s: no error type", info.Reason)
		}
		if s := info.Sentence; s == "" || !strings.HasSuffix(s, ".") || strings.Contains(s, ". ") {
			t.Errorf("%s: %q is not one sentence", info.Reason, s)
		}
		if w := info.Words; w == "" || strings.HasSuffix(w, ".") {
			t.Errorf("%s: %q is not a phrase", info.Reason, w)
		}
		if reason.ClassOf(rules.Refuse, info.Reason, false) == reason.Allowed {
			t.Errorf("%s: a refusal counts as allowed", info.Reason)
		}
	}
}

func TestReasonWithoutARowFailsClosed(t *testing.T) {
	t.Parallel()
	for _, r := range []rules.Reason{"", "new-reason"} {
		if got := reason.Of(r); got.Status != http.StatusInternalServerError || got.Words != string(r) {
			t.Errorf("%q: %+v", r, got)
		}
	}
}

func TestClassOf(t *testing.T) {
	t.Parallel()
	of := map[reason.Class][2][]rules.Reason{ // that allow, and that refuse
		reason.Allowed: {{
			rules.ReasonNoRule, rules.ReasonRule, rules.ReasonRobotsTxt, rules.ReasonRobotsUnavailable, rules.ReasonOverride, rules.ReasonSubresource,
		}, nil},
		reason.RefusedByRule:      {nil, {rules.ReasonRule, rules.ReasonHostOnly}},
		reason.RefusedByStatement: {nil, {rules.ReasonSignal, rules.ReasonLicence}},
		reason.RefusedByOperator:  {nil, {rules.ReasonOverride, rules.ReasonAccess, rules.ReasonDestination, rules.ReasonNoAgent}},
		reason.RulesUnavailable:   {nil, {rules.ReasonRobotsUnreachable, rules.ReasonRobotsUnavailable}},
		reason.Postponed:          {nil, {rules.ReasonPaced, rules.ReasonLimit}},
		reason.Failed:             {nil, {rules.ReasonOriginUnreachable, rules.ReasonRecord, rules.ReasonInternal, ""}},
		reason.NotJudged: {{
			rules.ReasonTunnel, rules.ReasonHostOnly, rules.ReasonExempt, rules.ReasonNotACrawl, rules.ReasonOwnService, rules.ReasonNotHTTP, rules.ReasonRulesPending,
		}, {
			rules.ReasonCredentials, rules.ReasonFailures, rules.ReasonMalformed, rules.ReasonHostMismatch, rules.ReasonLoop,
			rules.ReasonNotHTTP, rules.ReasonUntrusted, rules.ReasonHandshake, rules.ReasonClientLeft,
		}},
	}
	for class, reasons := range of {
		for i, v := range []rules.Verdict{rules.Allow, rules.Refuse} {
			for _, r := range reasons[i] {
				must.Equal(t, reason.ClassOf(v, r, false), class, "%s by %s", v, r)
			}
		}
	}
	if got := reason.ClassOf(rules.Allow, rules.ReasonNoRule, true); got != reason.Failed {
		t.Errorf("an allowed request that ended in heed's own 502 is %q, want failed", got)
	}
	if got := reason.ClassOf(rules.WouldRefuse, rules.ReasonRule, false); got != reason.Allowed {
		t.Errorf("a request that is only observed is %q, want allowed", got)
	}
}
