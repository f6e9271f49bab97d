package refusal

import (
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"heed/internal/audit"
	"heed/rules"
)

// ruleCase returns a refusal by a rule as a running heed has it, of a page at target.
func ruleCase(target string) Case {
	origin := rules.Origin{Scheme: "http", Host: "site.test", Port: 80}
	c := caseOf(rules.ReasonRule)
	c.Entry.ID, c.Entry.Scheme, c.Entry.Target, c.Entry.PolicyAge = audit.NewID(), "http", target, time.Minute
	c.Entry.UserAgent, c.Entry.Agent = "crawler/1.0", rules.Identify("crawler/1.0")
	c.Entry.Policy = rules.New(rules.Source{Origin: origin, State: rules.Available, FetchedAt: time.Now()}, []byte("User-agent: *\nDisallow: /private/\n"))
	c.Entry.Decision = c.Entry.Policy.Decide(c.Entry.Agent, rules.NewTarget(target))
	return c
}

// BenchmarkRefusal makes the answer to a request that a rule refuses, and reads it, for
// files of so many rules.
func BenchmarkRefusal(b *testing.B) {
	for _, n := range []int{1, 1000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			c, r := ruleCase("/private/1234"), &http.Request{Method: "GET", ProtoMajor: 1}
			file := []byte("User-agent: *\nDisallow: /private/\n")
			for i := range n - 1 {
				file = fmt.Appendf(file, "Disallow: /other/%d/\n", i)
			}
			c.Entry.Policy = rules.New(c.Entry.Policy.Source(), file)
			b.ReportAllocs()
			for b.Loop() {
				resp := New(c).Response(r)
				if n, err := io.Copy(io.Discard, resp.Body); err != nil || n != resp.ContentLength {
					b.Fatal(n, err)
				}
			}
		})
	}
}
