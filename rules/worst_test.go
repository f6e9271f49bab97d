package rules

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"heed/internal/tools/testkit/must"
)

// The cost of a decision.

// worstCase describes a file and a target. In a rule, N is a name that no other rule has.
type worstCase struct {
	rules  [][]string // pieces of the patterns that the rules of the file have in turn
	target []string   // pieces that are repeated to the end
	tail   []string
}

var (
	worstPatterns = []string{"*", "*", "*", "a", "b", "aa", "ab", "aab", "abc", "abcabcab", "/", "//", "N", "NN", "%2f", "%5c", "&", "=", "?", ";", "$", ".",
		strings.Repeat("a", 63), strings.Repeat("a", 64), strings.Repeat("ab", 40), strings.Repeat("*a", 30), strings.Repeat("*", 20)}
	worstTargets = []string{"a", "b", "aa", "ab", "abc", "aab", "abcabcab", "/", "//", "/./", "/../", "a/", "a//", ";", "&", "=", "?", "%26", "%2f", "%3d", "\\", "%5c", "%2541", "%252f", ".",
		strings.Repeat("a", 62) + "b"}
)

// text returns the file and the target of c, about as long as given.
func (c *worstCase) text(file, target int) (string, string) {
	var f strings.Builder
	f.WriteString("User-agent: *\n")
	for i := 0; f.Len() < file; i++ {
		name := fmt.Sprintf("%c%c%c", 'a'+i%26, 'a'+i/26%26, 'a'+i/676%26)
		f.WriteString("Disallow: /" + strings.ReplaceAll(strings.Join(c.rules[i%len(c.rules)], ""), "N", name) + "z\n")
	}
	unit, tail := strings.Join(c.target, ""), strings.Join(c.tail, "")
	return f.String(), "/" + strings.Repeat(unit, 1+target/len(unit)) + tail
}

// steps returns how many steps a decision takes, of the most that it may.
func steps(file, target string) (taken int, d Decision) {
	return stepsOf(New(Source{State: Available}, []byte(file)), target)
}

// stepsOf returns how many steps a decision of p for no agent takes.
func stepsOf(p *Policy, target string) (taken int, d Decision) {
	if p.engine == nil { // too many wildcards
		return 0, p.Decide(nil, NewTarget(target))
	}
	sets := p.engine.governing(nil)
	if p.engine.plain(target) {
		s := judging{steps: maxSteps, alone: true}
		set, rule := p.engine.judge(&s, sets, "", target)
		p.engine.decision(&d, &s, sets, set, rule, "")
		return maxSteps - s.steps, d
	}
	s := new(scratch)
	s.begin(maxSteps)
	p.engine.decideIn(&d, s, sets, target)
	return maxSteps - s.steps, d
}

// mutate returns a copy of c with one difference.
func (c *worstCase) mutate(r *rand.Rand) *worstCase {
	n := &worstCase{rules: make([][]string, len(c.rules)), target: change(r, c.target, worstTargets), tail: c.tail}
	copy(n.rules, c.rules)
	switch i := r.IntN(len(n.rules)); r.IntN(5) {
	case 0:
		n.target, n.tail = c.target, change(r, c.tail, worstTargets)
	case 1, 2:
		n.target, n.rules[i] = c.target, change(r, c.rules[i], worstPatterns)
	case 3:
		if len(n.rules) < 6 {
			n.rules = append(n.rules, change(r, n.rules[i], worstPatterns))
		}
	}
	return n
}

// change returns a copy of pieces with one more, one less or another one.
func change(r *rand.Rand, pieces, from []string) []string {
	at, piece := r.IntN(len(pieces)), from[r.IntN(len(from))]
	n := append([]string(nil), pieces...)
	switch r.IntN(3) {
	case 0:
		n[at] = piece
	case 1:
		n = append(n[:at], append([]string{piece}, n[at:]...)...)
	default:
		if len(n) > 1 {
			n = append(n[:at], n[at+1:]...)
		}
	}
	return n[:min(len(n), 24)]
}

// climb searches for the file and the target of a certain size whose decision takes the
// most steps, until one uses up all that a decision has.
func climb(seed uint64, tries int) (worst *worstCase, most int) {
	r := rand.New(rand.NewPCG(seed, 1))
	worst = &worstCase{rules: [][]string{{"*", "N"}}, target: []string{"a"}, tail: []string{"/"}}
	for n := 0; n < tries && most < maxSteps; n++ {
		next := worst
		for range 1 + r.IntN(3) {
			next = next.mutate(r)
		}
		if n, _ := steps(next.text(4<<10, 1<<10)); n > most {
			worst, most = next, n
		}
	}
	return worst, most
}

// TestHeed_NoSearchedCaseTakesMoreThanTheBudget searches small files and targets for the
// costliest, and asks for them at full size.
func TestHeed_NoSearchedCaseTakesMoreThanTheBudget(t *testing.T) {
	t.Parallel()
	tries, seeds, size := 300, 3, 512<<10
	if os.Getenv("HEED_TEST_FULL") != "" {
		tries, seeds, size = 5000, 40, MaxBytes
	}
	for seed := range seeds {
		worst, small := climb(uint64(seed), tries)
		file, target := worst.text(size, 60_000)
		taken, d := steps(file, target)
		t.Logf("seed %d: %d steps when small, %d of %d at full size, %s: rules %q, target %q, end %q", seed, small, taken, maxSteps, d.Reason, worst.rules, worst.target, worst.tail)
		over := taken - maxSteps
		must.True(t, over <= 1<<20, "%d steps more than there are", over)
	}
}

// TestHeed_RealFilesStayFarBelowTheBudget has the largest file seen in the open, by its
// numbers of rules and wildcards, and targets of 8 KiB, plain and ambiguous.
func TestHeed_RealFilesStayFarBelowTheBudget(t *testing.T) {
	t.Parallel()
	words := strings.Fields("search sort color size brand price page view print filter session order category product archive tag author feed login cart account review compare wishlist ajax api static media locale currency ref utm campaign source medium term content click")
	r := rand.New(rand.NewPCG(1, 2))
	word := func() string { return words[r.IntN(len(words))] }
	var f strings.Builder
	f.WriteString("User-agent: *\n")
	for i := range 5640 {
		path := fmt.Sprintf("/%s/%s-%d/", word(), word(), i)
		if i%8 < 3 {
			path = [...]string{
				fmt.Sprintf("/*?%s=%s%d", word(), word(), i), fmt.Sprintf("/*&%s=%s", word(), word()), fmt.Sprintf("/%s/*/%s-%d/", word(), word(), i),
				fmt.Sprintf("*/%s/%s*.html$", word(), word()), fmt.Sprintf("/*?*%s=*%s", word(), word()), fmt.Sprintf("/*%s_%s", word(), word()),
			}[r.IntN(6)]
		}
		f.WriteString("Disallow: " + path + "\n")
	}
	query := func(n int) string {
		var q strings.Builder
		for q.Len() < n {
			fmt.Fprintf(&q, "%s_%d=%s%%20%d&", word(), r.IntN(99), word(), r.IntN(9999))
		}
		return q.String()
	}
	for _, target := range []string{
		"/shop/item?" + query(8<<10),
		"/shop//item?" + query(8<<10),
		"/shop/a%2Fb/https://site.test/item?" + query(8<<10),
		"/shop/x=1&y=2/../item;v=1?" + query(8<<10),
		"/" + query(8<<10),
		"/a%2Fb//" + query(8<<10),
		"/" + strings.Repeat("shop/item-1/", 700),
	} {
		taken, d := steps(f.String(), target)
		t.Logf("%7d steps, %s: %.60s", taken, d.Reason, target)
		must.True(t, taken <= maxSteps/10, "%d steps of %d: %.60s", taken, maxSteps, target)
	}
}
