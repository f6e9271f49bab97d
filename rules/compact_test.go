package rules

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"heed/internal/tools/testkit/must"
)

// large returns a file of rules in many forms, and its policy.
func large(rules int) (string, *Policy) {
	random := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	b.WriteString("\xEF\xBB\xBF# large\nUser-agent: OneBot\nUser-agent: *\nCrawl-delay: 2\n")
	for i := range rules {
		n := random.IntN(4 * rules)
		b.WriteString([]string{
			fmt.Sprintf("Disallow: /catalog/section-%d/\n", n),
			fmt.Sprintf("Allow: /catalog/section-%d/public\r\n", n),
			fmt.Sprintf("  disallow : /shop/*/item%d.html$ # odd\n", n),
			fmt.Sprintf("Disallow: /caf%%c3%%a9/%d$\n", n),
			fmt.Sprintf("Disallow: /%d*x\n", n),
			fmt.Sprintf("Disallow: /%s%d\n", strings.Repeat("long/", i%300), n),
			fmt.Sprintf("Allow: /p/%d$\n", n),
		}[i%7])
		if i == rules/2 {
			b.WriteString("\nUser-agent: TwoBot\n")
		}
	}
	b.WriteString("Sitemap: https://site.test/sitemap.xml\n")
	s := &Snapshot{}
	s.Pack([]byte(b.String()))
	return b.String(), New(Source{State: Available, Snapshot: s}, []byte(b.String()))
}

func TestCompact_DecidesAsBefore(t *testing.T) {
	t.Parallel()
	file, p := large(7000)
	for name, p := range map[string]*Policy{
		"packed": p, "from a store": New(Source{State: Available, Snapshot: &Snapshot{SHA256: DigestOf([]byte(file)), Size: len(file)}}, []byte(file)),
		"strict": NewAs(Strict, p.Source(), []byte(file)),
	} {
		q := p.Compact()
		must.Need(t, q != p && q.Compact() == q && q.Size() <= p.Size()/2,
			"%s: %d octets, %d when compact", name, p.Size(), q.Size())
		body, err := q.Source().Snapshot.Body()
		must.True(t, err == nil && string(body) == file, "%s: the snapshot of a compact policy: %v", name, err)
		ways := []*Agent{nil, Identify("OneBot/1.0"), Identify("TwoBot/1.0"), Identify("Other/3")}
		random := rand.New(rand.NewPCG(3, 4))
		for i := range 1500 {
			n := random.IntN(28_000)
			target := NewTarget([]string{
				fmt.Sprintf("/catalog/section-%d/public/x", n), fmt.Sprintf("/shop/a/item%d.html", n), fmt.Sprintf("/café/%d", n),
				fmt.Sprintf("/%d/yx?a=b&c", n), fmt.Sprintf("/%s%d", strings.Repeat("long/", i%400), n), fmt.Sprintf("/p//./%d", n), fmt.Sprintf("/p/%d", n),
			}[i%7])
			agent := ways[i%4]
			got, want := q.Decide(agent, target), p.Decide(agent, target)
			must.Need(t, reflect.DeepEqual(got, want), "%s: %s: %+v, not %+v", name, target, got, want)
			if i%300 == 0 {
				got, want := q.Explain(agent, target), p.Explain(agent, target)
				must.Need(t, reflect.DeepEqual(got, want), "%s: %s: explained %+v, not %+v", name, target, got, want)
			}
		}
		for _, agent := range ways {
			got, n := q.DecideHost(agent)
			want, m := p.DecideHost(agent)
			must.True(t, reflect.DeepEqual(got, want) && n == m, "%s: the host: %+v %d, not %+v %d", name, got, n, want, m)
		}
	}
}

// A decision reads the blocks of the rules that decide, and no others.
func TestCompact_ADecisionReadsFewBlocks(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("User-agent: *\n")
	for i := range 100_000 {
		fmt.Fprintf(&b, "Disallow: /catalog/section-%d/page\n", i)
	}
	s := &Snapshot{}
	s.Pack([]byte(b.String()))
	p := New(Source{State: Available, Snapshot: s}, []byte(b.String())).Compact()
	n := p.Size()
	must.True(t, n <= 256<<20/100, "100,000 rules take %d octets: 100 such files do not fit into 256 MiB", n)
	sum := 0
	for i := range 1000 {
		taken, _ := stepsOf(p, fmt.Sprintf("/catalog/section-%d/page", i*200))
		sum += taken
	}
	must.True(t, sum/1000 <= 2*stepsPerBlock, "a decision takes %d steps, more than two blocks", sum/1000)
}

// A file in whose blocks a target has many rules to try is too complex, and not slow.
func TestCompact_ManyBlocksAreBounded(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("User-agent: *\n")
	for i := range 2000 {
		fmt.Fprintf(&b, "Disallow: /%s\n", strings.Repeat("a", 1+i*7919%2000))
	}
	s := &Snapshot{}
	s.Pack([]byte(b.String()))
	p := New(Source{State: Available, Snapshot: s}, []byte(b.String())).Compact()
	taken, d := stepsOf(p, "/"+strings.Repeat("a", 3000))
	must.True(t, d.Verdict == Refuse && taken <= maxSteps+stepsPerBlock, "%d steps, %+v", taken, d)
}
