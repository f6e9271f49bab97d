// Package why explains verdicts, step by step: those of now for `heed check`, the recorded ones
// for `heed why`, and both for the dashboard. The steps are data; their texts have no markup.
package why

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"heed/internal/audit"
	"heed/internal/audit/replay"
	"heed/internal/audit/store"
	"heed/internal/control"
	"heed/internal/judge/signal"
	"heed/internal/output/console"
	"heed/proxy/refusal"
	"heed/rules"
)

// Recorded returns the steps of a recorded decision, with its reasons as name writes them. A nil
// paint is one without colours.
func Recorded(t *replay.Explained, paint console.Painter, name Naming) []Step {
	x := &recorded{explain(recordedJudgement(t), t.Road, paint), t, name}
	if t.Road == nil {
		for _, name := range t.Tokens {
			x.road.Tokens = append(x.road.Tokens, rules.TokenGroups{Token: rules.Token{Name: name, Piece: name}})
		}
	}
	x.step("Decision", "%s of %s", t.ID, t.Time.Format("2006-01-02T15:04:05.000000Z"))
	x.more("in %s", console.Quoted(t.File))
	if t.Revises != "" {
		x.more("it revises %s", t.Revises)
	}
	x.client()
	x.agentStep()
	if t.Policy != nil {
		x.rulesStep()
		x.snapshot()
		x.groupsStep()
		x.matchesStep()
	}
	if len(t.Purposes) > 0 {
		x.step("Purpose", "%s", console.Quoted(strings.Join(t.Purposes, ", ")))
	}
	if t.Use != nil {
		x.useSteps(t.Use)
	}
	x.verdict()
	if t.Config != "" {
		x.step("Settings", "%s", console.Quoted(t.Config))
	}
	x.outcome()
	x.replayed()
	if t.Provable {
		x.step("Proof", "heed audit prove %s", t.ID)
	}
	return x.steps
}

// Colour returns the colour of a verdict on a terminal.
func Colour(verdict string) string {
	switch verdict {
	case "allow":
		return console.Green
	case "refuse":
		return console.Red
	}
	return console.Yellow
}

// recordedJudgement returns the decision as a judgement of heed check.
func recordedJudgement(t *replay.Explained) *control.Judgement {
	j := &control.Judgement{
		URL: t.URL, Agent: t.UserAgent, Allowed: t.Verdict.Verdict == "allow", Reason: rules.Reason(t.Reason),
		Group: t.Group, Rule: t.Rule, Line: t.Line, Token: t.Token, Role: t.Role().String(), Variant: t.Variant, Settled: t.Settled, Detail: t.Detail,
	}
	if t.Sent != "" {
		j.Agent = t.Sent
	}
	if t.Role() == rules.Declared {
		j.Agent = strings.Join(t.Tokens, ", ")
	}
	if p := t.Policy; p != nil {
		j.By, j.Age, j.Stale, j.Profile, j.Robots = ByRecord, t.Age, p.Stale, p.Profile, "its robots.txt"
		if o, _, err := rules.ParseURL(t.URL); err == nil {
			j.Robots = o.RobotsURL()
		}
		if p.Snapshot != nil && len(p.Snapshot.Chain) > 0 {
			j.Robots = p.Snapshot.Chain[0]
		}
		if p.Own {
			j.By = ByOperator
		}
		j.Detail = cmp.Or(j.Detail, p.Error, p.Note)
	}
	return j
}

// recorded adds the fields of a recorded decision that heed check does not have.
type recorded struct {
	*explainer
	decision *replay.Explained
	name     Naming
}

// client prints the client and the User-Agents that it sent and that the site got.
func (x *recorded) client() {
	t, text := x.decision, console.Quoted(x.decision.Client)
	if t.Port > 0 {
		text += fmt.Sprintf(", port %d", t.Port)
	}
	if t.User != "" {
		text += ", user " + console.Quoted(t.User)
	}
	if t.ClientName != "" {
		text += ", as the settings' " + console.Quoted(t.ClientName)
	}
	if t.Mode == "observe" {
		text += ", only observed"
	}
	x.step("Client", "%s", text)
	if to := audit.RedirectedTo(t.Detail); to.IsValid() {
		x.more("its connection to %s was redirected to heed", to)
	}
	if t.Declared || t.Sent != "" {
		x.more("it sent User-Agent: %s", console.Quoted(cmp.Or(t.UserAgent, "(none)")))
	}
	switch sent := t.Verdict.Verdict != "refuse"; {
	case t.Declared && t.Sent != "" && sent:
		x.more("the site received User-Agent: %s", console.Quoted(t.Sent))
	case t.Declared && t.Sent != "":
		x.more("the site received nothing; an allowed request would have had User-Agent: %s", console.Quoted(t.Sent))
	}
	if len(t.AlsoObey) > 0 {
		x.more("it also obeys the groups that name %s", console.Quoted(strings.Join(t.AlsoObey, ", ")))
	}
	if t.SignedKey != "" {
		x.more("signed for the site with the key %s, published at %s", console.Quoted(t.SignedKey), console.Quoted(t.SignedBy))
	}
}

// snapshot prints the size, hash and origin of the octets of the robots.txt.
func (x *recorded) snapshot() {
	s := x.decision.Policy.Snapshot
	switch {
	case s == nil:
		return
	case s.Zlib != nil:
		x.more("%s", console.Plural(uint64(max(0, s.Size)), "octet"))
		x.more("sha256:%s", s.SHA256)
	}
	if s.Status != 0 {
		x.more("answered with status %d on %s", s.Status, s.FetchedAt.UTC().Format(time.RFC3339))
	}
	if len(s.Chain) > 1 {
		x.more("after redirects, by %s", console.Quoted(s.Chain[len(s.Chain)-1]))
	}
	if s.AskedAs != "" {
		x.more("fetched as %s", console.Quoted(s.AskedAs))
	}
}

// verdict prints the verdict and the line behind it.
func (x *recorded) verdict() {
	t := x.decision
	because := x.because()
	switch rules.Reason(t.Reason) {
	case rules.ReasonHostOnly:
		if t.Unseen > 0 {
			because += ", and " + console.Plural(uint64(t.Unseen), "rule") + " might have refused some of them"
		}
	case rules.ReasonSubresource:
		because = console.Quoted(t.Settled)
	}
	x.step("Verdict", "%s: %s", x.paint(Colour(t.Verdict.Verdict), console.Quoted(t.Verdict.Verdict)), because)
	if t.Verdict.Verdict == "would-refuse" {
		x.more("it was let through: heed only observed")
	}
	if t.Late != nil {
		x.more("the verdict that followed: %s", VerdictText(t.Late, x.name))
		x.Line = t.Late.Line
	}
	if t.Text != "" {
		x.more("line %d, byte for byte: %s", x.Line, console.Quoted(t.Text))
	}
	switch {
	case t.Again == replay.Redacted:
		x.more("values in the URL are kept as keyed hashes, so that it cannot be judged again")
	case t.Redacted:
		x.more("values in the URL are kept as keyed hashes, on which the verdict does not depend")
	}
}

// outcome prints the waiting time and the outcome of the exchange.
func (x *recorded) outcome() {
	t := x.decision
	if t.Delay > 0 || t.Waited >= minWaitShown {
		of := ""
		if t.Turn > 0 {
			of = fmt.Sprintf(", of it %s for turns", inSeconds(t.Turn))
		}
		x.step("Waited", "%s, for the rules and for its turn%s", inSeconds(t.Waited), of)
	}
	if t.Delay > 0 {
		x.more("a delay of %s is asked for", inSeconds(t.Delay))
	}
	o := t.Outcome
	if o == nil {
		x.step("Outcome", "not recorded: the exchange has not ended, or heed was killed before it did")
		return
	}
	by := "heed"
	if o.FromSite {
		by = "the site"
	}
	text := fmt.Sprintf("status %d from %s", o.Status, by)
	if o.Status == 0 {
		text = "no answer"
	}
	x.step("Outcome", "%s, %s sent on, after %s", text, console.Plural(uint64(o.BytesOut), "octet"), inSeconds(o.Duration))
	x.siteAnswer(o)
	if o.Error != "" {
		x.more("%s", console.Quoted(o.Error))
	}
}

// minWaitShown is the shortest waiting time that is printed, in seconds.
const minWaitShown = 0.001

func inSeconds(s float64) time.Duration {
	return time.Duration(s * float64(time.Second)).Round(time.Microsecond)
}

// replayed prints the result of judging the decision again.
func (x *recorded) replayed() {
	switch t := x.decision; t.Again {
	case replay.Same:
		x.step("Again", "judged again by engine %d, it comes out the same", rules.Engine)
	case replay.NotByRules:
	case replay.Redacted:
		x.step("Again", "not replayable: redacted")
	case replay.Incomplete:
		x.step("Again", "not replayable: %s", console.Quoted(t.What))
	default:
		x.step("Again", "judged again by engine %d, it comes out otherwise: %s", rules.Engine, VerdictText(&t.Now, x.name))
		if t.What != "" {
			x.more("%s", console.Quoted(t.What))
		}
	}
}

// siteAnswer prints the site's answer where it was a refusal, or where the client did not
// get it.
func (x *recorded) siteAnswer(o *store.Outcome) {
	if o.SiteStatus != 0 {
		x.more("the site answered with status %d, and its page was withheld", o.SiteStatus)
	}
	if o.SiteAnswer != "" {
		x.more("the site's answer: %s", AnswerWords(o.SiteAnswer))
	}
}

// AnswerWords returns the class of a site's answer in words.
func AnswerWords(class string) string {
	words := signal.SiteAnswer(class).Words()
	if words == class {
		return console.Quoted(class)
	}
	return words + " (" + class + ")"
}

// Use returns the steps of what a site states about the use of a page.
func Use(v *signal.Verdict) []Step {
	x := explain(nil, nil, nil)
	x.useSteps(v)
	return x.steps
}

// useSteps prints the answers by category, with the rule of precedence, and the statements
// that led to them.
func (x *explainer) useSteps(v *signal.Verdict) {
	label := "Use"
	for _, c := range signal.Categories() {
		r, known := v.Results[c]
		if !known {
			continue
		}
		text := fmt.Sprintf("%s: %s", c, r.Answer)
		if r.Precedence != "" {
			text += " (" + string(r.Precedence) + ")"
		}
		if len(r.Unmet) > 0 && r.Answer != signal.Disallow {
			text += ", with a demand"
		}
		x.step(label, "%s", text)
		label = ""
	}
	if label != "" {
		x.step(label, "nothing is stated")
	}
	for i := range v.Statements {
		x.statement(&v.Statements[i])
	}
	switch {
	case v.Incomplete():
		x.step("Page", "its head was not read to its end (%s)", v.Page)
	case v.Page != "" && v.Page != "whole":
		x.step("Page", "there was no head to read (%s)", v.Page)
	}
}

func (x *explainer) statement(s *signal.Statement) {
	x.step("Stated", "%s", refusal.Place(s))
	x.more("  %s", console.Quoted(s.Text))
	says := s.String()
	for _, more := range []string{s.Demand, s.Fault, s.Note} {
		if more != "" {
			says += "; " + console.Quoted(more)
		}
	}
	if s.Variant != "" {
		says += "; it counts since a server may take the URL for another (" + spelling(s.Variant) + ")"
	}
	x.more("  %s", says)
}
