package rules

import (
	"fmt"
	"strings"
	"testing"
)

// benchRules is a file of n rules for all agents, one in ten with an inner star
// and a final "$"; all of those begin alike.
func benchRules(n int) string {
	var b strings.Builder
	b.WriteString("User-agent: *\n")
	for i := range n {
		switch {
		case i%10 == 9:
			fmt.Fprintf(&b, "Disallow: /shop/*/item%d.html$\n", i)
		case i%7 == 3:
			fmt.Fprintf(&b, "Allow: /catalog/section-%d/public/\n", i)
		default:
			fmt.Fprintf(&b, "Disallow: /catalog/section-%d/\n", i)
		}
	}
	return b.String()
}

// benchTargets are 2,048 distinct targets of which some match.
func benchTargets(n int) []string {
	var targets []string
	for i := range 2048 {
		switch i % 4 {
		case 0:
			targets = append(targets, fmt.Sprintf("/catalog/section-%d/page-%d.html", i%(2*n), i))
		case 1:
			targets = append(targets, fmt.Sprintf("/shop/toys/blue/item%d.html", i))
		case 2:
			targets = append(targets, fmt.Sprintf("/about/people/%d?from=catalog", i))
		default:
			targets = append(targets, fmt.Sprintf("/catalog/section-%d/public/%d", i%(2*n), i))
		}
	}
	return targets
}

func benchDecide(b *testing.B, file string, targets []string) {
	p := policyOf(file)
	agent := Identify("Mozilla/5.0 (compatible; BenchBot/1.0; +https://bench.example/)")
	p.Decide(agent, "/")
	refused := 0
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		if p.Decide(agent, targets[i%len(targets)]).Verdict == Refuse {
			refused++
		}
	}
	b.StopTimer()
	if len(targets) > 100 {
		b.ReportMetric(100*float64(refused)/float64(b.N), "%refused")
	}
}

func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{10, 100, 1000, 10000} {
		b.Run(fmt.Sprintf("rules=%d", n), func(b *testing.B) { benchDecide(b, benchRules(n), benchTargets(n)) })
	}
	b.Run("leading-wildcards=1000", func(b *testing.B) {
		var file strings.Builder
		file.WriteString("User-agent: *\n")
		for i := range 1000 {
			fmt.Fprintf(&file, "Disallow: /*word%dend\n", i)
		}
		benchDecide(b, file.String(), benchTargets(1000))
	})
	for _, size := range []int{4 << 10, 8 << 10, 16 << 10} {
		b.Run(fmt.Sprintf("adversarial/target=%d", size), func(b *testing.B) {
			benchDecide(b, "User-agent: *\nDisallow: /*a*a*a*a*b\nDisallow: /*aa*aa*aa*c$\n", longTargets(size))
		})
	}
	b.Run("hostile", func(b *testing.B) { benchDecide(b, hostile(4<<20), longTargets(8<<10)) })
	b.Run("hostile-below-cap", func(b *testing.B) { benchDecide(b, hostileRules(MaxWildcards/2), longTargets(8<<10)) })
}

// longTargets are 1,024 distinct targets of about size octets, all of one letter.
func longTargets(size int) []string {
	long := "/" + strings.Repeat("a", size)
	var targets []string
	for i := range 1024 {
		targets = append(targets, long[:len(long)-i%64]+fmt.Sprint(i))
	}
	return targets
}

// hostile is size octets of distinct rules, each with an inner star.
func hostile(size int) string {
	return hostileRules(size / len("Disallow: /*aaaa*zzzzz\n"))
}

func hostileRules(n int) string {
	var b strings.Builder
	b.WriteString("User-agent: *\n")
	for i := range n {
		fmt.Fprintf(&b, "Disallow: /*%s*z%x\n", "aaa", i)
	}
	return b.String()
}

func realistic() []byte {
	var b strings.Builder
	for g := range 12 {
		fmt.Fprintf(&b, "# Section %d: what robots may not fetch here\nUser-agent: Robot%d\nUser-agent: Other%d\n", g, g, g)
		for i := range 12 {
			fmt.Fprintf(&b, "Disallow: /catalog/section-%d/private-%d/\n", g, i)
		}
		b.WriteString("Disallow: /*?sort=\nAllow: /catalog/public$\nCrawl-delay: 5\n\n")
	}
	b.WriteString("Sitemap: https://site.test/sitemap.xml\n")
	return []byte(b.String())
}

func BenchmarkParse(b *testing.B) {
	for name, body := range map[string][]byte{"realistic": realistic(), "rules=10000": []byte(benchRules(10000)), "hostile": []byte(hostile(4 << 20))} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			var p *Policy
			for range b.N {
				p = New(Source{State: Available}, body)
			}
			b.ReportMetric(float64(p.Size())/float64(len(body)), "size/source")
		})
	}
}
