package rules_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"heed/rules"
)

// story is a robots.txt and what it says to those who ask. Stories are told in
// the files vectors_*_test.go.
type story struct {
	from string // the document and section the rule comes from; heed where it is our own choice
	says string
	as   rules.Profile
	file string // a line break at its start does not count
	// asks has a User-Agent string on a line of its own, and indented below it
	// what that agent is told: verdict, target, the line that decides, and the
	// reading of the target when it is not the target as sent. Without a
	// User-Agent nobody in particular asks.
	asks string
}

// question is one line of asks.
type question struct {
	agent   string
	target  string
	verdict rules.Verdict
	line    int
	variant string
}

// questions reads asks.
func (s *story) questions(t *testing.T) (all []question) {
	t.Helper()
	agent := ""
	for text := range strings.Lines(s.asks) {
		text = strings.TrimSuffix(text, "\n")
		words := strings.Fields(text)
		switch {
		case len(words) == 0:
		case text[0] != ' ' && text[0] != '\t':
			agent = text
		case len(words) < 2 || len(words) > 4:
			t.Fatalf("%s: cannot read %q", s.says, text)
		default:
			q := question{agent: agent, target: words[1], verdict: verdictOf(t, words[0])}
			if len(words) > 2 {
				n, err := strconv.Atoi(words[2])
				if err != nil {
					t.Fatalf("%s: cannot read %q", s.says, text)
				}
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

// site is the place of every story's robots.txt.
var site = rules.Origin{Scheme: "https", Host: "site.test", Port: 443}

func policyAs(profile rules.Profile, file string) *rules.Policy {
	return rules.NewAs(profile, rules.Source{Origin: site, State: rules.Available}, []byte(file))
}

// agentOf reads what stands for an agent in a story: a User-Agent string, or
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

// tell puts every question of the stories to the engine.
func tell(t *testing.T, stories []story) {
	t.Helper()
	for _, s := range stories {
		t.Run(fmt.Sprintf("%s %s", s.from, s.says), func(t *testing.T) {
			p := policyAs(s.as, strings.TrimPrefix(s.file, "\n"))
			for _, q := range s.questions(t) {
				d := p.Decide(agentOf(q.agent), q.target)
				if d.Verdict != q.verdict || d.Line != q.line || d.Variant != q.variant {
					t.Errorf("%q asks for %s: %v by line %d %q %s\nwant %v by line %d %s\n(%s)",
						q.agent, q.target, d.Verdict, d.Line, d.Rule, d.Variant, q.verdict, q.line, q.variant, s.file)
				}
			}
		})
	}
}

var allStories = slices.Concat(rfc9309Stories, rep1994Stories, koster1996Stories, parsingStories, nameStories, matchingStories, identityStories, strictStories, googleHabits, googleAlike)

// TestHeed_VectorsAreManyAndOfEveryOrigin keeps the stories from thinning out.
func TestHeed_VectorsAreManyAndOfEveryOrigin(t *testing.T) {
	count := 0
	origins := map[string]int{}
	for _, s := range allStories {
		n := len(s.questions(t))
		count += n
		origin, _, _ := strings.Cut(s.from, " ")
		origins[origin] += n
	}
	for _, origin := range []string{"RFC9309", "REP1994", "K96", "heed"} {
		if origins[origin] < 20 {
			t.Errorf("only %d vectors are from %s", origins[origin], origin)
		}
	}
	t.Logf("%d vectors: %v", count, origins)
	if count < 400 {
		t.Errorf("there are %d vectors, want 400", count)
	}
}
