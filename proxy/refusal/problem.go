package refusal

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"heed/internal/base/safetext"
	"heed/internal/judge/acl"
	"heed/proxy/limit"
	"heed/proxy/upstream"
	"heed/rules"
)

// Problem is the body of a refusal (RFC 9457). The sentence comes first, since a
// reader may see no more than the beginning.
type Problem struct {
	Title      string  `json:"title"`
	Type       string  `json:"type"`
	Status     int     `json:"status"`
	Detail     string  `json:"detail"`
	Reason     string  `json:"reason"`
	Retry      string  `json:"retry"` // "no" or "after"
	RetryAfter int     `json:"retry_after,omitempty"`
	URL        string  `json:"url,omitempty"`
	RobotsURL  string  `json:"robots_url,omitempty"`
	Line       int     `json:"line,omitempty"`
	Quoted     *quoted `json:"quoted_from_site,omitempty"`
	Token      string  `json:"product_token,omitempty"`
	Piece      string  `json:"user_agent_piece,omitempty"`
	Queue      *queue  `json:"queue,omitempty"`
	Purpose    string  `json:"purpose,omitempty"`
	Statement  string  `json:"statement_url,omitempty"`
	PolicyAge  *int64  `json:"policy_age_seconds,omitempty"`
	FetchedAt  string  `json:"fetched_at,omitempty"`
	DecisionID string  `json:"decision_id"` // empty: nothing was recorded
}

// told is a Problem in one piece of memory with what it points to.
type told struct {
	Problem
	age  int64
	site quoted
}

// quoted holds text that the site wrote, separate from heed's own.
type quoted struct {
	Rule  string `json:"rule,omitempty"`
	Group string `json:"group,omitempty"`
}

// maxQuoted bounds each quoted text, in octets.
const maxQuoted = 300

// tell sets t, which is zero, to the body of a.
func (a *Answer) tell(t *told) {
	e, p := a.of.Entry, &t.Problem
	*p = Problem{
		Title: a.Phrase, Type: "urn:heed:" + string(a.of.Reason), Status: a.Status,
		Reason: string(a.of.Reason), Retry: "no",
	}
	if e.ID != [16]byte{} {
		p.DecisionID = e.ID.String()
	}
	if e.Host != "" {
		p.URL = safetext.Printable(e.URL(), 2000)
	}
	if a.RetryAfter > 0 {
		p.Retry, p.RetryAfter = "after", seconds(a.RetryAfter)
	}
	if a.of.Reason == rules.ReasonOriginUnreachable && !upstream.FailureOf(a.err()).Lasting {
		p.Retry = "after" // when, the site's operator knows
	}
	if e.Policy != nil {
		source := e.Policy.Source()
		p.RobotsURL = source.Origin.RobotsURL()
		if source.State != rules.Unreachable {
			t.age = int64(e.PolicyAge / time.Second)
			p.PolicyAge, p.FetchedAt = &t.age, source.FetchedAt.UTC().Format(time.RFC3339)
		}
	}
	if d := &e.Decision; a.of.Reason == rules.ReasonRule || a.of.Reason == rules.ReasonHostOnly || d.Reason == rules.ReasonPaced && d.Line > 0 {
		t.site = quoted{Rule: legible(d.Rule), Group: legible(d.Group)}
		p.Line, p.Quoted = d.Line, &t.site
		if p.Token = legible(d.Token); d.Role != rules.Obeyed {
			p.Piece = legible(d.Piece)
		}
	}
	if a.of.Use != nil {
		a.quoteUse(p)
	}
	if a.of.Paced != nil {
		if rule := WaitRule(&a.of.Paced.Position); p.Line == 0 && rule.Line > 0 { // the decision was another one
			p.Line, p.Quoted = rule.Line, &quoted{Rule: legible(rule.Kind.String() + ": " + rule.Value)}
		}
		p.Queue = newQueue(&a.of.Paced.Position)
	}
	p.Detail = a.explain(p)
}

// forReader returns the text for a client of somebody's proxy, or for the operator's own command,
// which heed run has started: who reads it can write the line that changes the answer.
func (a *Answer) forReader(client, own string) string {
	if a.of.Proxy.Own {
		return own
	}
	return client
}

// hostLine names the place of a setting of the site; empty for who cannot write it.
func (a *Answer) hostLine() string {
	return a.forReader("", ` In proxy.toml: [[host]] match = ["`+cmp.Or(safetext.Printable(a.of.Host, 100), "HOST")+
		`"] and the setting; heed run --config FILE names the file, and heed config check reads it.`)
}

// explain returns an explanation for a person: what led to the refusal and whether
// a retry can help. It never suggests another User-Agent.
func (a *Answer) explain(p *Problem) string {
	e := a.of.Entry
	switch a.of.Reason {
	case rules.ReasonRule:
		return a.ruleDetail(p)
	case rules.ReasonSignal, rules.ReasonLicence:
		return a.useDetail()
	case rules.ReasonOverride:
		return a.forReader("The operator of this proxy refuses this part of the site, independently of its robots.txt. A retry will not help.",
			"A line of proxy.toml here, or an entry of heed refuse, refuses this part of the site, independently of its robots.txt: heed check --explain URL names it.")
	case rules.ReasonNoAgent:
		return a.forReader("The operator of this proxy", "proxy.toml here") + " requires that every client names itself. Send a User-Agent field."
	case rules.ReasonHostOnly:
		whom := "this agent"
		if e.Decision.Role == rules.Obeyed {
			whom = fmt.Sprintf("%s, which this client obeys besides its own names (also_obey),", safetext.Quote(e.Decision.Token))
		}
		return fmt.Sprintf("The site's robots.txt bars %s from the whole site: line %d of %s. "+
			"This proxy does not decrypt tunnels to the site, and so refuses them to agents that may fetch nothing there.%s", whom, e.Decision.Line, p.RobotsURL, a.serviceHint())
	case rules.ReasonPaced:
		return a.pacedDetail(p)
	case rules.ReasonUntrusted:
		return fmt.Sprintf("heed decrypts https with certificates of its own CA, so that it can judge each request, and this client rejected one: %s. "+
			"To make a client trust it, see http://%s/; its certificate is http://%s/ca.pem.", e.Detail, a.of.Proxy.Page, a.of.Proxy.Page)
	case rules.ReasonCredentials:
		return "This proxy serves users with a password, and this request came without one, or with a wrong one: " + cmp.Or(a.detail, e.Detail) +
			". Give both in the address of the proxy, http://USER:PASSWORD@HOST:PORT, and write other characters of them than letters and digits in percent encoding, such as %40 for @ and %3A for a colon."
	case rules.ReasonRobotsUnreachable:
		retry := "A retry will not help: heed does not ask the site for it."
		if p.RetryAfter > 0 {
			retry = fmt.Sprintf("A retry after %d seconds can help.", p.RetryAfter)
		}
		return fmt.Sprintf("Nothing may be fetched from a site while its rules cannot be read (RFC 9309 section 2.3.1.4): %s. %s", cause(e.Policy.Source()), retry)
	case rules.ReasonOriginUnreachable:
		return a.detail
	case rules.ReasonLimit:
		if over, ok := a.of.Err.(*limit.Exceeded); ok {
			return a.limitDetail(over.Kind)
		}
		return a.detail
	case rules.ReasonDestination:
		return "This proxy connects to public addresses, and to others as far as " +
			a.forReader("its operator allows: access.private_destinations, access.allow_to and access.refuse_to in its settings. A retry will not help while they stay the same.",
				"proxy.toml here allows: [access] private_destinations, allow_to and refuse_to.")
	case rules.ReasonClientLeft:
		if e.TurnWaited > 0 {
			return "The client had closed its connection, or one direction of it, while the request waited for its turn. A client that waits for longer is served."
		}
		return "The client had closed its connection, or one direction of it, while the site's robots.txt was being fetched for it. A retry can help: the rules may have arrived by now."
	case rules.ReasonRecord:
		return "Every decision has to be recorded before it takes effect, and the record could not be written. " + a.forReader("The operator of this proxy sees the cause with heed status.", "heed status names the cause.")
	case rules.ReasonInternal:
		return "A fault inside heed; nothing was sent to the site. " +
			a.forReader("The operator finds it in the log under the decision id.", "It is in the log under the decision id: heed run --log FILE.")
	default:
		return cmp.Or(a.detail, e.Detail)
	}
}

// ruleDetail returns the explanation of a refusal by a rule of the site.
func (a *Answer) ruleDetail(p *Problem) string {
	e := a.of.Entry
	who := "It was judged under the rules for all agents, since no group names this one."
	if e.Decision.Token != "" {
		who = fmt.Sprintf("The piece %s of the User-Agent led to the group that holds it.", safetext.Quote(e.Decision.Piece))
		switch e.Decision.Role {
		case rules.Declared:
			who = fmt.Sprintf("The declared name %s led to the group that holds it.", safetext.Quote(e.Decision.Token))
		case rules.Obeyed:
			who = fmt.Sprintf("The group that holds it is for %s, which this client obeys besides its own names, as %s.", safetext.Quote(e.Decision.Token),
				a.forReader("the operator of this proxy wants it (also_obey)", "heed run --also-obey, or also_obey in proxy.toml here, wants it"))
		}
	}
	return "The site's robots.txt does not let this agent fetch this address: line " + strconv.Itoa(e.Decision.Line) + " of " + p.RobotsURL + ". " + who +
		" A retry will not help while the site keeps this rule." + a.serviceHint()
}

// installers are the names by which programs go that install packages.
var installers = []string{"pip", "uv", "npm", "yarn", "pnpm", "cargo", "rubygems", "ruby", "bundler", "composer", "debian"}

// serviceHint names the setting for programs that call a service, where this
// may be one: a host that crawlers are to leave alone altogether, or a program
// that installs packages.
func (a *Answer) serviceHint() string {
	e := a.of.Entry
	product, _, _ := strings.Cut(e.UserAgent, "/")
	product, _, _ = strings.Cut(strings.TrimSpace(product), " ")
	if !slices.Contains(installers, strings.ToLower(product)) && !barsAll(e.Policy, e.Agent) {
		return ""
	}
	host := safetext.Printable(a.of.Host, 100)
	return " A service that programs call, such as a package registry, is not crawled: where " + host +
		" is one, " + a.forReader("the operator of this proxy says so with crawl = false at its [[host]] in proxy.toml, or for one command with",
		"write crawl = false at its [[host]] in proxy.toml, or for this command") + " heed run --service " + host + "." + a.hostLine()
}

// barsAll reports whether p lets agent fetch nothing. That takes a look at each rule, and
// is asked only where the shortest path is refused.
func barsAll(p *rules.Policy, agent *rules.Agent) bool {
	if p.Decide(agent, rules.NewTarget("/")).Verdict != rules.Refuse {
		return false
	}
	d, _ := p.DecideHost(agent)
	return d.Verdict == rules.Refuse
}

// unusable returns what a file that was read has too many of; nil when that is not in err.
func unusable(err error) error {
	for _, tooMany := range []error{rules.ErrTooManyWildcards, rules.ErrTooManyWords} {
		if errors.Is(err, tooMany) {
			return tooMany
		}
	}
	return nil
}

// cause states why rules could not be read, without the details of the error about
// heed's network.
func cause(source rules.Source) string {
	if tooMany := unusable(source.Err); tooMany != nil {
		return tooMany.Error()
	}
	switch public := safetext.Public(source.Err); {
	case errors.Is(source.Err, upstream.ErrLessPublic):
		return "robots.txt redirects to a less public address than its own, which is not followed"
	case errors.Is(source.Err, acl.ErrDestination):
		return "robots.txt redirects to an address that heed may not reach"
	case public != "":
		return "robots.txt " + safetext.Printable(public, 300)
	case source.Status == http.StatusOK, source.Status == http.StatusNonAuthoritativeInfo:
		return "robots.txt could not be read to its end"
	case source.Status != 0:
		return fmt.Sprintf("robots.txt was answered with status %d", source.Status)
	}
	failure := upstream.FailureOf(source.Err)
	if failure.Cause != "" {
		return "robots.txt could not be read: " + safetext.Printable(failure.Cause, 300)
	}
	if failure.Status == http.StatusGatewayTimeout {
		return "robots.txt was not answered in time (" + failure.Type + ")"
	}
	return "robots.txt was not answered (" + failure.Type + ")"
}

// render returns p as problem+json, HTML or plain text, whichever accept prefers.
func (p *Problem) render(accept []string) (contentType string, body []byte) {
	switch preferred(accept) {
	case "text/html":
		var b bytes.Buffer
		if err := page.Execute(&b, p); err == nil {
			return "text/html; charset=utf-8", b.Bytes()
		}
	case "text/plain":
		return "text/plain; charset=utf-8", fmt.Appendf(nil, "%s\n\n%s\n\nreason: %s\ndecision: %s\n", p.Title, p.Detail, p.Reason, p.DecisionID)
	}
	return "application/problem+json", p.text()
}

// text returns p as an Encoder of encoding/json with an indentation of two spaces writes it,
// in a tenth of the time.
func (p *Problem) text() []byte {
	o := object{append(make([]byte, 0, 1<<9+len(p.Title)+len(p.Detail)+len(p.URL)+len(p.RobotsURL)), '{'), "\n  \""}
	o.text("title", p.Title)
	o.text("type", p.Type)
	o.number("status", int64(p.Status))
	o.text("detail", p.Detail)
	o.text("reason", p.Reason)
	o.text("retry", p.Retry)
	if p.RetryAfter != 0 {
		o.number("retry_after", int64(p.RetryAfter))
	}
	o.some("url", p.URL)
	o.some("robots_url", p.RobotsURL)
	if p.Line != 0 {
		o.number("line", int64(p.Line))
	}
	if q := p.Quoted; q != nil && *q == (quoted{}) {
		o.value("quoted_from_site", q)
	} else if q != nil {
		o.name("quoted_from_site")
		inner := object{append(o.b, '{'), "\n    \""}
		inner.some("rule", q.Rule)
		inner.some("group", q.Group)
		o.b = append(inner.b, "\n  }"...)
	}
	o.some("product_token", p.Token)
	o.some("user_agent_piece", p.Piece)
	if p.Queue != nil {
		o.value("queue", p.Queue)
	}
	o.some("purpose", p.Purpose)
	o.some("statement_url", p.Statement)
	if p.PolicyAge != nil {
		o.number("policy_age_seconds", *p.PolicyAge)
	}
	o.some("fetched_at", p.FetchedAt)
	o.text("decision_id", p.DecisionID)
	return append(o.b, "\n}\n"...)
}

// object is an object of JSON that is being written.
type object struct {
	b      []byte
	before string // each name
}

func (o *object) name(name string) {
	if o.b[len(o.b)-1] != '{' { // the end of no value
		o.b = append(o.b, ',')
	}
	o.b = append(append(append(o.b, o.before...), name...), `": `...)
}

func (o *object) number(name string, value int64) {
	o.name(name)
	o.b = strconv.AppendInt(o.b, value, 10)
}

// some writes a text unless it is empty.
func (o *object) some(name, value string) {
	if value != "" {
		o.text(name, value)
	}
}

func (o *object) text(name, value string) {
	if !isPlain(value) {
		o.value(name, value)
		return
	}
	o.name(name)
	o.b = append(append(append(o.b, '"'), value...), '"')
}

// value writes anything else.
func (o *object) value(name string, v any) {
	o.name(name)
	o.b = appendJSON(o.b, v)
}

// isPlain reports whether text is printable ASCII that JSON does not escape.
func isPlain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// appendJSON appends v, a member of the body, as JSON. "<" is itself: the body is no HTML.
func appendJSON(b []byte, v any) []byte {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("  ", "  ")
	_ = e.Encode(v) // texts and finite numbers cannot fail
	return append(b, bytes.TrimSuffix(text.Bytes(), []byte("\n"))...)
}

// preferred picks the format of a refusal by the Accept field (RFC 9110
// §12.5.1): problem+json unless HTML or plain text is asked for above it.
func preferred(accept []string) (best string) {
	most := -1.0
	for _, offer := range [...]string{"application/problem+json", "text/html", "text/plain"} {
		if q := quality(accept, offer); q > most {
			best, most = offer, q
		}
	}
	return best
}

// quality returns the weight accept gives to a media type; the most specific
// range counts.
func quality(accept []string, offer string) float64 {
	if len(accept) == 0 {
		return 1
	}
	kind, _, _ := strings.Cut(offer, "/")
	weight, specific := 0.0, -1
	for part := range strings.SplitSeq(strings.Join(accept, ","), ",") {
		mediaRange, params, _ := strings.Cut(strings.ToLower(part), ";")
		s := -1
		switch strings.TrimSpace(mediaRange) {
		case offer:
			s = 2
		case "application/json":
			if offer == "application/problem+json" {
				s = 2
			}
		case kind + "/*":
			s = 1
		case "*/*":
			s = 0
		}
		if s > specific {
			weight, specific = weightOf(params), s
		}
	}
	return weight
}

func weightOf(params string) float64 {
	for p := range strings.SplitSeq(params, ";") {
		if v, ok := strings.CutPrefix(strings.TrimSpace(p), "q="); ok {
			if q, err := strconv.ParseFloat(v, 64); err == nil && q >= 0 && q <= 1 {
				return q
			}
		}
	}
	return 1
}

// legible returns text of the site without what could deceive a reader:
// control and invisible characters replaced, bounded.
func legible(s string) string {
	if len(s) > maxQuoted {
		s = s[:maxQuoted] + "..."
	}
	if isPlain(s) {
		return s
	}
	return strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return unicode.ReplacementChar
		}
		return c
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

var page = template.Must(template.New("refusal").Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{{.Title}}</title>
<style>:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:42em;margin:3em auto;padding:0 1em}
dt{font-weight:600}dd{margin:0 0 .6em;overflow-wrap:anywhere}</style>
<h1>{{.Title}}</h1>
<p>{{.Detail}}</p>
<dl>
{{with .URL}}<dt>Address asked for</dt><dd>{{.}}</dd>{{end}}
{{with .RobotsURL}}<dt>Rules of the site</dt><dd>{{.}}</dd>{{end}}
{{with .Quoted}}<dt>Quoted from the site</dt><dd><q>{{.Rule}}</q>{{with .Group}}, group <q>{{.}}</q>{{end}}</dd>{{end}}
{{with .Statement}}<dt>Where the site states it</dt><dd>{{.}}</dd>{{end}}
{{with .PolicyAge}}<dt>Age of the rules</dt><dd>{{.}} s</dd>{{end}}
{{with .RetryAfter}}<dt>Asking again can help after</dt><dd>{{.}} s</dd>{{end}}
<dt>Decision</dt><dd>{{.DecisionID}}</dd>
</dl>
<p>This page is heed's, not the site's.</p>
</html>
`))
