package rules_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"heed/rules"
)

const benchAgent = "Mozilla/5.0 (compatible; BenchBot/1.0; +https://bench.example/)"

// benchRules is a file of n rules for all agents, one in ten with an inner
// star and a final "$"; all of those begin alike.
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

// benchTargets are 2,048 distinct targets of which some meet a rule.
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

// largest is a file in the shape of the largest one found in the open: 5,640
// rules, of which 2,125 have wildcards, nearly all of them after the first "/".
func largest() string {
	var b strings.Builder
	b.WriteString("User-agent: *\n")
	for i := range 5640 {
		switch {
		case i < 1000:
			fmt.Fprintf(&b, "Disallow: /*?filter_%d=\n", i)
		case i < 1600:
			fmt.Fprintf(&b, "Disallow: /*/print-%d/\n", i)
		case i < 1900:
			fmt.Fprintf(&b, "Disallow: /*&sort%d=*&page=\n", i)
		case i < 2100:
			fmt.Fprintf(&b, "Disallow: /catalog/*/item-%d.html$\n", i)
		case i < 2125:
			fmt.Fprintf(&b, "Disallow: /*%c%c\n", 'q'+i%7, "-_=&."[i%5])
		default:
			fmt.Fprintf(&b, "Disallow: /catalog/section-%d/\n", i)
		}
	}
	return b.String()
}

// leadingWildcards is a file of 1,000 rules that begin with a wildcard.
func leadingWildcards() string {
	var b strings.Builder
	b.WriteString("User-agent: *\n")
	for i := range 1000 {
		fmt.Fprintf(&b, "Disallow: /*word%dend\n", i)
	}
	return b.String()
}

func leadingTargets() []string {
	targets := benchTargets(1000)
	for i := 0; i < len(targets); i += 2 {
		targets[i] = fmt.Sprintf("/files/word%d/word%dend/words", i, i)
	}
	return targets
}

// longTargets are 1,024 distinct targets of about size octets, all but the end
// of one letter.
func longTargets(size int) []string {
	long := "/" + strings.Repeat("a", size)
	var targets []string
	for i := range 1024 {
		targets = append(targets, long[:len(long)-i%64]+fmt.Sprint(i))
	}
	return targets
}

// hostile is 4 MiB of distinct rules with two wildcards each.
func hostile() string {
	const letters = "abcdefghijklmnopqrstuvwxyz"
	var b strings.Builder
	b.WriteString("User-agent: *\n")
	for i := 0; b.Len() < 4<<20-32; i++ {
		n := i % (26 * 26 * 26)
		fmt.Fprintf(&b, "Disallow: /*%c%c*%c%x\n", letters[n/676], letters[n/26%26], letters[n%26], i)
	}
	return b.String()
}

// hostileTargets are long targets of one letter and, every other one, of
// letters at random, so that the pieces of many rules occur.
func hostileTargets() []string {
	random := rand.New(rand.NewPCG(1, 2))
	targets := longTargets(8 << 10)
	for i := 0; i < len(targets); i += 2 {
		target := []byte(targets[i])
		for j := 1; j < len(target); j++ {
			target[j] = byte('a' + random.IntN(26))
		}
		targets[i] = string(target)
	}
	return targets
}

func benchDecide(b *testing.B, file string, targets []string) {
	p := rules.New(rules.Source{State: rules.Available}, []byte(file))
	agent := rules.Identify(benchAgent)
	for _, target := range targets {
		p.Decide(agent, rules.NewTarget(target))
	}
	refused := 0
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		if p.Decide(agent, rules.NewTarget(targets[i%len(targets)])).Verdict == rules.Refuse {
			refused++
		}
	}
	b.StopTimer()
	b.ReportMetric(100*float64(refused)/float64(b.N), "%refused")
}

var benchSizes = []int{10, 100, 1000, 10000}

func BenchmarkDecide(b *testing.B) {
	for _, n := range benchSizes {
		b.Run(fmt.Sprintf("rules=%d", n), func(b *testing.B) { benchDecide(b, benchRules(n), benchTargets(n)) })
	}
	b.Run("largest", func(b *testing.B) { benchDecide(b, largest(), benchTargets(5640)) })
	b.Run("leading-wildcards=1000", func(b *testing.B) { benchDecide(b, leadingWildcards(), leadingTargets()) })
	for _, size := range []int{8 << 10, 16 << 10} {
		b.Run(fmt.Sprintf("adversarial/target=%dKiB", size>>10), func(b *testing.B) {
			benchDecide(b, "User-agent: *\nDisallow: /*a*a*a*a*b\nDisallow: /*aa*aa*aa*c$\n", longTargets(size))
		})
	}
	b.Run("hostile", func(b *testing.B) { benchDecide(b, hostile(), hostileTargets()) })
}

// realistic is a file as large sites have them: comments, names in runs, groups
// of a dozen rules, other fields.
func realistic() string {
	var b strings.Builder
	for g := range 12 {
		fmt.Fprintf(&b, "# Section %d: what robots may not fetch here\nUser-agent: Robot%d\nUser-agent: Other%d\n", g, g, g)
		for i := range 12 {
			fmt.Fprintf(&b, "Disallow: /catalog/section-%d/private-%d/\n", g, i)
		}
		b.WriteString("Disallow: /*?sort=\nAllow: /catalog/public$\nCrawl-delay: 5\n\n")
	}
	b.WriteString("User-agent: *\n")
	for i := range 60 {
		fmt.Fprintf(&b, "Disallow: /%c%c/account/orders/%d\n", 'a'+i%26, 'a'+i%7, i)
	}
	b.WriteString("Sitemap: https://site.test/sitemap.xml\n")
	return b.String()
}

func BenchmarkParse(b *testing.B) {
	for _, c := range []struct{ name, file string }{
		{"realistic", realistic()}, {"rules=10000", benchRules(10000)},
		{"leading-wildcards=1000", leadingWildcards()}, {"hostile", hostile()},
	} {
		b.Run(c.name, func(b *testing.B) {
			body := []byte(c.file)
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			size := 0
			for range b.N {
				size = rules.New(rules.Source{State: rules.Available}, body).Size()
			}
			b.ReportMetric(float64(size)/float64(len(body)), "memory/source")
		})
	}
}
