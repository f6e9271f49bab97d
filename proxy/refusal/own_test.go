package refusal

import (
	"strings"
	"testing"

	"heed/internal/audit"
	"heed/internal/judge/reason"
	"heed/internal/judge/signal"
	"heed/internal/tools/testkit/must"
	"heed/proxy/limit"
	"heed/proxy/upstream"
	"heed/rules"
)

// No refusal sends the operator's own command to the operator of the proxy, and those that do so
// for other clients name what to write instead.
func TestHeed_TheOwnCommandIsNotSentToAnOperator(t *testing.T) {
	t.Parallel()
	named := 0
	see := func(what string, detail func(a *Answer) string, c Case) {
		c.Host = "site.test"
		others := detail(&Answer{of: c})
		c.Proxy.Own = true
		own := detail(&Answer{of: c})
		if strings.Contains(own, "perator of this proxy") || strings.Contains(own, "old_tls") && !strings.Contains(own, `[[host]] match = ["site.test"]`) {
			t.Errorf("%s: %s", what, own)
		}
		if strings.Contains(others, "perator of this proxy") {
			named++
		}
	}
	p := rules.New(rules.Source{Origin: rules.Origin{Scheme: "https", Host: "site.test", Port: 443}, State: rules.Available}, []byte("User-agent: *\nDisallow: /\n"))
	for _, i := range reason.All() {
		e := &audit.Entry{Policy: p, Agent: rules.Identify("x"), Decision: rules.Decision{Reason: i.Reason, Token: "x", Role: rules.Obeyed}}
		see(string(i.Reason), func(a *Answer) string { return a.problem().Detail }, Case{Reason: i.Reason, Entry: e, Use: &signal.Refusal{Purpose: "training", Reason: i.Reason}})
	}
	for _, k := range []limit.Kind{limit.RefusalsPerClient, limit.BodyTime} {
		see(k.String(), func(a *Answer) string { return a.limitDetail(k) }, Case{})
	}
	for _, f := range []upstream.Failure{{Type: "dns_timeout"}, {Scarce: true}, {Offer: true}, {Again: true}} {
		see("a failure", func(a *Answer) string { return a.stageDetail(f) }, Case{})
	}
	for _, fault := range []string{upstream.UnknownAuthority, upstream.Expired, upstream.NotYetValid, upstream.OtherThanPinned} {
		see(fault, func(a *Answer) string { return a.certificateDetail(upstream.Failure{Certificate: fault}) }, Case{})
	}
	must.True(t, named >= 15, "%d refusals name the operator to other clients", named)
}
