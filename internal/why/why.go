// Package why puts into words why a recorded decision was made, step by step, for
// `heed why` and for the dashboard.
package why

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"heed/internal/audit/replay"
	"heed/internal/audit/store"
	"heed/internal/check"
	"heed/internal/console"
	"heed/internal/control"
	"heed/internal/pageurl"
	"heed/internal/signal"
	"heed/rules"
)

// Explain returns the steps of a decision. file is the path of its record. The texts of
// clients and sites in it are printable, and are not escaped for HTML.
func Explain(file string, t *replay.Explained, paint console.Painter) *check.Explainer {
	x := &check.Explainer{Judgement: recordedJudgement(t), Road: t.Road, Paint: paint}
	if x.Road == nil {
		x.Road = &rules.Explanation{}
	}
	y := &writer{x, t}
	x.Step("Decision", "%s of %s", t.ID, t.Time.Format("2006-01-02T15:04:05.000000Z"))
	x.More("in %s", console.Quoted(file))
	if t.Revises != "" {
		x.More("it revises %s", t.Revises)
	}
	y.client()
	x.AgentStep()
	if t.Policy != nil {
		x.RulesStep()
		y.snapshot()
		x.GroupsStep()
		x.MatchesStep()
	}
	if len(t.Purposes) > 0 {
		x.Step("Purpose", "%s", console.Quoted(strings.Join(t.Purposes, ", ")))
	}
	if t.Use != nil {
		x.UseSteps(t.Use)
	}
	y.verdict()
	if t.Config != "" {
		x.Step("Settings", "%s", console.Quoted(t.Config))
	}
	y.outcome()
	y.replayed()
	return x
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
		Group: t.Group, Rule: t.Rule, Line: t.Line, Token: t.Token, Variant: t.Variant, Settled: t.Settled, Detail: t.Detail,
	}
	if t.Sent != "" {
		j.Agent = t.Sent
	}
	if t.Declared {
		j.Agent = strings.Join(t.Tokens, ", ")
	}
	if p := t.Policy; p != nil {
		j.By, j.Age, j.Stale, j.Profile, j.Robots = check.ByRecord, t.Age, p.Stale, p.Profile, "its robots.txt"
		if o, _, err := pageurl.Parse(t.URL); err == nil {
			j.Robots = o.RobotsURL()
		}
		if p.Snapshot != nil && len(p.Snapshot.Chain) > 0 {
			j.Robots = p.Snapshot.Chain[0]
		}
		if p.Own {
			j.By = check.ByOperator
		}
		j.Detail = cmp.Or(j.Detail, p.Error, p.Note)
	}
	return j
}

// writer adds the fields of a recorded decision that heed check does not have.
type writer struct {
	*check.Explainer
	decision *replay.Explained
}

// redirectedTo precedes the original destination in the detail of a decision on a
// connection that the kernel redirected; see redirectedConn.describe in package proxy.
const redirectedTo = "redirected connection to "

// client prints the client and the User-Agents that it sent and that the site got.
func (y *writer) client() {
	t, text := y.decision, console.Quoted(y.decision.Client)
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
	y.Step("Client", "%s", text)
	if _, to, redirected := strings.Cut(t.Detail, redirectedTo); redirected {
		y.More("its connection to %s was redirected to heed", console.Quoted(to))
	}
	if t.Declared || t.Sent != "" {
		y.More("it sent User-Agent: %s", console.Quoted(cmp.Or(t.UserAgent, "(none)")))
	}
	if t.Declared && t.Sent != "" {
		y.More("the site received User-Agent: %s", console.Quoted(t.Sent))
	}
	if t.SignedKey != "" {
		y.More("signed for the site with the key %s, published at %s", console.Quoted(t.SignedKey), console.Quoted(t.SignedBy))
	}
}

// snapshot prints the size, hash and origin of the bytes of the robots.txt.
func (y *writer) snapshot() {
	s := y.decision.Policy.Snapshot
	switch {
	case s == nil:
		return
	case s.Zlib != nil:
		y.More("%s", console.Plural(uint64(max(0, s.Size)), "byte"))
		y.More("sha256:%s", s.SHA256)
	}
	if s.Status != 0 {
		y.More("answered with status %d on %s", s.Status, s.FetchedAt.UTC().Format(time.RFC3339))
	}
	if len(s.Chain) > 1 {
		y.More("after redirects, by %s", console.Quoted(s.Chain[len(s.Chain)-1]))
	}
	if s.AskedAs != "" {
		y.More("fetched as %s", console.Quoted(s.AskedAs))
	}
}

// verdict prints the verdict and the line behind it.
func (y *writer) verdict() {
	t := y.decision
	because := y.Because()
	switch rules.Reason(t.Reason) {
	case rules.ReasonHostOnly:
		if t.Unseen > 0 {
			because += ", and " + console.Plural(uint64(t.Unseen), "rule") + " might have refused some of them"
		}
	case rules.ReasonSubresource:
		because = console.Quoted(t.Settled)
	}
	y.Step("Verdict", "%s: %s", y.Paint(Colour(t.Verdict.Verdict), console.Quoted(t.Verdict.Verdict)), because)
	if t.Verdict.Verdict == "would-refuse" {
		y.More("it was let through: heed only observed")
	}
	if t.Late != nil {
		y.More("the verdict that followed: %s", VerdictText(t.Late))
		y.Line = t.Late.Line
	}
	if t.Text != "" {
		y.More("line %d, byte for byte: %s", y.Line, console.Quoted(t.Text))
	}
	switch {
	case t.Again == replay.Redacted:
		y.More("values in the URL are kept as keyed hashes, so that it cannot be judged again")
	case t.Redacted:
		y.More("values in the URL are kept as keyed hashes, on which the verdict does not depend")
	}
}

// outcome prints the waiting time and the outcome of the exchange.
func (y *writer) outcome() {
	t := y.decision
	if t.Delay > 0 || t.Waited >= minWaitShown {
		y.Step("Waited", "%s, for the rules and for its turn", inSeconds(t.Waited))
	}
	if t.Delay > 0 {
		y.More("a delay of %s is asked for", inSeconds(t.Delay))
	}
	o := t.Outcome
	if o == nil {
		y.Step("Outcome", "not recorded: the exchange has not ended, or heed was killed before it did")
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
	y.Step("Outcome", "%s, %s sent on, after %s", text, console.Plural(uint64(o.BytesOut), "byte"), inSeconds(o.Duration))
	y.siteAnswer(o)
	if o.Error != "" {
		y.More("%s", console.Quoted(o.Error))
	}
}

// minWaitShown is the shortest waiting time that is printed, in seconds.
const minWaitShown = 0.001

func inSeconds(s float64) time.Duration {
	return time.Duration(s * float64(time.Second)).Round(time.Microsecond)
}

// replayed prints the result of judging the decision again.
func (y *writer) replayed() {
	t := y.decision
	switch t.Again {
	case replay.Same:
		y.Step("Again", "judged again by engine %d, it comes out the same", rules.Engine)
	case replay.NotByRules:
	case replay.Redacted:
		y.Step("Again", "not replayable: redacted")
	case replay.Incomplete:
		y.Step("Again", "not replayable: %s", console.Quoted(t.What))
	default:
		y.Step("Again", "judged again by engine %d, it comes out otherwise: %s", rules.Engine, VerdictText(&t.Now))
		if t.What != "" {
			y.More("%s", console.Quoted(t.What))
		}
	}
}

// siteAnswer prints the site's answer where it was a refusal, or where the client did not
// get it.
func (y *writer) siteAnswer(o *store.Outcome) {
	if o.SiteStatus != 0 {
		y.More("the site answered with status %d, and its page was withheld", o.SiteStatus)
	}
	if o.SiteAnswer != "" {
		y.More("the site's answer: %s", AnswerWords(o.SiteAnswer))
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
