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
	must.Need(t, len(all) >= 29, "rules/decide.go has %d reasons; the test does not find all of them", len(all))
	var rows []rules.Reason
	for _, info := range reason.All() {
		rows = append(rows, info.Reason)
	}
	slices.Sort(all)
	must.True(t, slices.Equal(rows, all), "the reasons with a row are\n%v\nand those of the code are\n%v", rows, all)
}

func TestEveryRowIsComplete(t *testing.T) {
	t.Parallel()
	for _, info := range reason.All() {
		must.True(t, info.Status >= 400 && http.StatusText(info.Status) != "", "%s: status %d", info.Reason, info.Status)
		must.True(t, info.Error != "" || info.Reason == rules.ReasonCredentials, "%s: no error type", info.Reason)
		if s := info.Sentence; s == "" || !strings.HasSuffix(s, ".") || strings.Contains(s, ". ") {
			t.Errorf("%s: %q is not one sentence", info.Reason, s)
		}
		w := info.Words
		must.True(t, w != "" && !strings.HasSuffix(w, "."), "%s: %q is not a phrase", info.Reason, w)
		must.True(t, reason.ClassOf(rules.Refuse, info.Reason, false) != reason.Allowed,
			"%s: a refusal counts as allowed", info.Reason)
	}
}

func TestReasonWithoutARowFailsClosed(t *testing.T) {
	t.Parallel()
	for _, r := range []rules.Reason{"", "new-reason"} {
		got := reason.Of(r)
		must.True(t, got.Status == http.StatusInternalServerError && got.Words == string(r), "%q: %+v", r, got)
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
	got := reason.ClassOf(rules.Allow, rules.ReasonNoRule, true)
	must.True(t, got == reason.Failed, "an allowed request that ended in heed's own 502 is %q, want failed", got)
	must.Equal(t, reason.ClassOf(rules.WouldRefuse, rules.ReasonRule, false), reason.Allowed, "a request that is only observed")
}
