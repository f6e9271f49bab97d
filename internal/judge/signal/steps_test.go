package signal_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"heed/internal/judge/signal"
	"heed/internal/judge/signal/licence"
	"heed/internal/judge/signal/page"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// maxSteps is the budget of a target, and overSteps what the comparison that uses it up may
// take beyond it.
const (
	maxSteps  = 1 << 24
	overSteps = 1 << 20
)

// hostile are shapes of paths of statements; %d makes each another one.
var hostile = []string{
	"/%d", "/a%d*b", "/*a*a*a*a*a*a*a*a%d", "/*%d$", "*" + strings.Repeat("a*", 60) + "%d", "/" + strings.Repeat("a", 100) + "%d", "/*" + strings.Repeat("a", 63) + "b%d",
}

// targets of up to 64 KiB, plain and in many readings.
func longTargets() []string {
	return []string{
		"/a", "/" + strings.Repeat("a", 60_000), "/" + strings.Repeat("a/", 30_000), "/" + strings.Repeat("a/", 100) + strings.Repeat("/", 60_000),
		"/" + strings.Repeat("a%2f..%5c", 6_500), "/" + strings.Repeat("/./a&%26;..", 5_500), "/x?" + strings.Repeat("a/", 30_000),
	}
}

// TestHeed_StatementsTakeNoMoreThanTheBudget judges documents of the greatest length that
// state as much as they can, for long targets. What is over the budget refuses every purpose,
// and no client without one.
func TestHeed_StatementsTakeNoMoreThanTheBudget(t *testing.T) {
	t.Parallel()
	all := map[string]func(shape string, in *signal.Input){
		"Content-Usage": func(shape string, in *signal.Input) {
			in.Robots = usageLines(shape, signal.MaxLines)
		},
		"TDMRep": func(shape string, in *signal.Input) {
			b := strings.Builder{}
			b.WriteString("[{}")
			for i := 0; i < 10_000 && b.Len() < signal.MaxTDMRep-2*len(shape)-100; i++ {
				fmt.Fprintf(&b, `,{"location":"`+shape+`","tdm-reservation":1}`, i)
			}
			b.WriteString("]")
			in.TDMRep = signal.ReadTDMRep("u", []byte(b.String()))
		},
		"RSL": func(shape string, in *signal.Input) { in.Robots, in.Licences = manyLicences(t, shape) },
	}
	for name, add := range all {
		for _, shape := range hostile {
			in := request{}.input(t)
			add(shape, &in)
			for _, target := range longTargets() {
				in.Target = rules.NewTarget(target)
				v := signal.Judge(in)
				spent := in.Target.Spent()
				must.True(t, spent <= maxSteps+overSteps, "%s of %.20q for %.20q: %d steps", name, shape, target, spent)
				_, refused := v.Refuses(signal.PurposeTraining)
				must.True(t, v.TooComplex == (spent > maxSteps) && (!v.TooComplex || refused),
					"%s of %.20q for %.20q: %d steps, too complex: %v, refused: %v", name, shape, target, spent, v.TooComplex, refused)
				_, refused = v.Refuses()
				must.True(t, !refused, "%s of %.20q for %.20q: refused without a purpose", name, shape, target)
			}
		}
	}
}

// usageLines returns a robots.txt of n lines of Content-Usage.
func usageLines(shape string, n int) *signal.Robots {
	var b strings.Builder
	b.WriteString("User-agent: *\n")
	for i := range n {
		fmt.Fprintf(&b, "Content-Usage: "+shape+" train-ai=n\n", i)
	}
	return signal.ReadRobots(rules.New(rules.Source{State: rules.Available}, []byte(b.String())), rules.Identify("ExampleBot/1.0"), "u")
}

// manyLicences returns a robots.txt that declares eight licences of many contents.
func manyLicences(t *testing.T, shape string) (*signal.Robots, map[string]signal.Licence) {
	var b strings.Builder
	b.WriteString("<rsl>")
	for i := 0; i < 5_000 && b.Len() < licence.MaxBytes-200-len(shape); i++ {
		fmt.Fprintf(&b, `<content url="`+shape+`"><license><prohibits>all</prohibits></license></content>`, i)
	}
	d := must.Get(licence.Parse([]byte(b.String() + "</rsl>")))(t)
	robots, licences := "", map[string]signal.Licence{}
	for i := range 8 {
		address := fmt.Sprintf("https://site.example/%d.xml", i)
		robots += "License: " + address + "\n"
		licences[address] = signal.Licence{Document: d}
	}
	return signal.ReadRobots(rules.New(rules.Source{State: rules.Available}, []byte(robots)), rules.Identify("ExampleBot/1.0"), "u"), licences
}

// TestHeed_TooManyStatementsAreTooComplex has documents with more statements than are judged:
// they refuse, and are not taken for absent or unreadable.
func TestHeed_TooManyStatementsAreTooComplex(t *testing.T) {
	t.Parallel()
	many := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	declares := "License: https://site.example/license.xml\n"
	for name, r := range map[string]request{
		"Content-Usage":   {robots: "User-agent: *\n" + many(signal.MaxLines+1, "Content-Usage: /%d train-ai=y\n")},
		"of other groups": {robots: many(signal.MaxLines+1, "User-agent: a%d\nContent-Signal: ai-train=yes\n")},
		"TDMRep":          {tdmrep: "[{\"location\":\"/y\",\"tdm-reservation\":0}" + many(10_000, `,{"location":"/%d"}`) + "]"},
		"RSL <content>":   {robots: declares, licence: "<rsl>" + many(10_001, `<content url="/%d"/>`) + "</rsl>"},
		"RSL <license>":   {robots: declares, licence: `<rsl><content url="/">` + many(10_000, `<license><permits>all</permits><legal type="%d"/></license>`) + "</content></rsl>"},
		"RSL in the page": {head: `<script type="application/rsl+xml"><rsl>` + many(10_001, `<content url="/%d"/>`) + `</rsl></script>`},
	} {
		v := r.judge(t)
		must.True(t, name != "RSL in the page" || v.Page == "whole" || v.Page == string(page.TooLong),
			"%s: the page was read %q", name, v.Page)
		for _, p := range []signal.Purpose{signal.PurposeTraining, signal.PurposeSearch} {
			if refusal, refused := v.Refuses(p); !refused && v.Page != string(page.TooLong) || refused && refusal.Reason != rules.ReasonTooComplex {
				t.Errorf("%s: refused for %s: %v, %+v", name, p, refused, refusal)
			}
		}
		_, refused := v.Refuses()
		must.True(t, !refused, "%s: refused without a purpose", name)
	}
}

// repeated returns a piece of a document n times, at most size octets; "#" becomes another
// number each time.
func repeated(piece string, n, size int) string {
	var b strings.Builder
	for i := 0; i < n && b.Len()+len(piece)+8*strings.Count(piece, "#") <= size; i++ {
		b.WriteString(strings.ReplaceAll(piece, "#", strconv.Itoa(i)))
	}
	return b.String()
}

// hostileInput returns a policy, and the input of a verdict by documents that are a piece
// many times.
func hostileInput(t testing.TB, robots, entry, content, target string, n, size int, profile rules.Profile) (*rules.Policy, signal.Input) {
	agent := rules.Identify("ExampleBot/1.0")
	text := "License: https://site.example/license.xml\nUser-agent: *\n" + repeated(robots, n, size)
	p := rules.NewAs(profile, rules.Source{Origin: origin(t), State: rules.Available}, []byte(text))
	in := signal.Input{URL: "https://site.example/", Origin: origin(t), Target: rules.NewTarget(target), Agent: agent, Profile: profile, Crawl: true}
	in.Robots = signal.ReadRobots(p, agent, "u")
	in.TDMRep = signal.ReadTDMRep("u", []byte("["+repeated(entry+",", n, min(size, signal.MaxTDMRep)-10)+"{}]"))
	d, err := licence.Parse([]byte("<rsl>" + repeated(content, n, min(size, licence.MaxBytes)-20) + "</rsl>"))
	in.Licences = map[string]signal.Licence{"https://site.example/license.xml": {Document: d, Err: err}}
	return p, in
}

// FuzzHeed_DocumentsTakeNoMoreThanTheBudget makes documents and a target of pieces, each many
// times. The rules and all statements together take no more steps than one request has;
// beyond it the verdict is too complex, for every purpose and for no client without one.
func FuzzHeed_DocumentsTakeNoMoreThanTheBudget(f *testing.F) {
	for _, shape := range hostile {
		shape = strings.ReplaceAll(shape, "%d", "#")
		f.Add("Disallow: "+shape+"\nContent-Usage: "+shape+" train-ai=n\n", `{"location":"`+shape+`","tdm-reservation":1}`,
			`<content url="`+shape+`"><license><prohibits type="usage">all</prohibits></license></content>`, "a/;x%2f..%5c", uint16(200), uint16(6000), byte(0))
	}
	f.Fuzz(func(t *testing.T, robots, entry, content, piece string, n, length uint16, profile byte) {
		target := "/" + repeated(piece, int(length), int(length))
		p, in := hostileInput(t, robots, entry, content, target, int(n), 128<<10, rules.Profile(profile%4))
		d := p.Decide(in.Agent, in.Target)
		if spent := in.Target.Spent(); spent > maxSteps+overSteps {
			t.Errorf("the rules took %d steps", spent)
		} else if d.Reason == rules.ReasonTooComplex && d.Verdict != rules.Refuse {
			t.Error("what is too complex is not refused")
		}
		v := signal.Judge(in)
		spent := in.Target.Spent()
		must.True(t, spent <= maxSteps+2*overSteps, "all took %d steps", spent)
		if _, refused := v.Refuses(signal.Purposes()...); spent > maxSteps && (!v.TooComplex || !refused) {
			t.Errorf("%d steps, too complex: %v, refused: %v", spent, v.TooComplex, refused)
		}
		_, refused := v.Refuses()
		must.True(t, !refused, "refused without a purpose")
	})
}
