package rules_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// vector is a robots.txt with the expected decisions about some targets. Vectors
// are in the files vectors_*_test.go.
type vector struct {
	from string // the document and section of the rule; heed where it is our own choice
	name string
	as   rules.Profile
	file string // a line break at its start does not count
	// want has a User-Agent string on a separate line, and indented below it the
	// decisions for that agent: verdict, target, the line that decides, and the
	// reading of the target when it is not the target as sent. Without a
	// User-Agent the agent is nil.
	want string
}

// question is one line of want.
type question struct {
	agent   string
	target  string
	verdict rules.Verdict
	line    int
	variant string
}

// questions parses want.
func (s *vector) questions(t *testing.T) (all []question) {
	t.Helper()
	agent := ""
	for text := range strings.Lines(s.want) {
		text = strings.TrimSuffix(text, "\n")
		words := strings.Fields(text)
		switch {
		case len(words) == 0:
		case text[0] != ' ' && text[0] != '\t':
			agent = text
		case len(words) < 2 || len(words) > 4:
			t.Fatalf("%s: cannot read %q", s.name, text)
		default:
			q := question{agent: agent, target: words[1], verdict: verdictOf(t, words[0])}
			if len(words) > 2 {
				n, err := strconv.Atoi(words[2])
				must.Need(t, err == nil, "%s: cannot read %q", s.name, text)
				q.line = n
			}
			if len(words) > 3 {
				q.variant = words[3]
			}
			all = append(all, q)
		}
	}
	return all
}

func verdictOf(t *testing.T, word string) rules.Verdict {
	t.Helper()
	switch word {
	case "allow":
		return rules.Allow
	case "refuse":
		return rules.Refuse
	}
	t.Fatalf("%q is no verdict", word)
	return rules.Refuse
}

// site is the origin of every vector's robots.txt.
var site = rules.Origin{Scheme: "https", Host: "site.test", Port: 443}

func policyAs(profile rules.Profile, file string) *rules.Policy {
	return rules.NewAs(profile, rules.Source{Origin: site, State: rules.Available}, []byte(file))
}

// agentOf parses the agent of a vector: a User-Agent string, or
// "declared:" with product tokens.
func agentOf(text string) *rules.Agent {
	if text == "" {
		return nil
	}
	if tokens, ok := strings.CutPrefix(text, "declared:"); ok {
		return rules.Declare(strings.Fields(tokens)...)
	}
	return rules.Identify(text)
}

// checkVectors compares the decisions of the engine with those of vectors.
func checkVectors(t *testing.T, vectors []vector) {
	t.Parallel()
	for _, s := range vectors {
		t.Run(fmt.Sprintf("%s %s", s.from, s.name), func(t *testing.T) {
			p := policyAs(s.as, strings.TrimPrefix(s.file, "\n"))
			for _, q := range s.questions(t) {
				d := p.Decide(agentOf(q.agent), rules.NewTarget(q.target))
				if d.Verdict != q.verdict || d.Line != q.line || d.Variant != q.variant {
					t.Errorf("%q asks for %s: %v by line %d %q %s\nwant %v by line %d %s\n(%s)",
						q.agent, q.target, d.Verdict, d.Line, d.Rule, d.Variant, q.verdict, q.line, q.variant, s.file)
				}
			}
		})
	}
}

var allVectors = slices.Concat(rfc9309Vectors, rep1994Vectors, koster1996Vectors, parsingVectors, nameVectors, matchingVectors, identityVectors, strictVectors, googleHabits, googleAlike)

// TestHeed_VectorsAreManyAndOfEveryOrigin keeps the vectors from being lost.
func TestHeed_VectorsAreManyAndOfEveryOrigin(t *testing.T) {
	t.Parallel()
	count := 0
	origins := map[string]int{}
	for _, s := range allVectors {
		n := len(s.questions(t))
		count += n
		origin, _, _ := strings.Cut(s.from, " ")
		origins[origin] += n
	}
	for _, origin := range []string{"RFC9309", "REP1994", "K96", "heed"} {
		must.True(t, origins[origin] >= 20, "only %d vectors are from %s", origins[origin], origin)
	}
	t.Logf("%d vectors: %v", count, origins)
	must.True(t, count >= 400, "there are %d vectors, want 400", count)
}
