package command

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"heed/internal/audit/replay"
	"heed/rules"
)

// tellWhy tells a decision, a step a paragraph.
func tellWhy(w io.Writer, paint painter, file string, t *replay.Told) error {
	x := &explainer{judgement: recordedJudgement(t), road: t.Road, paint: paint}
	if x.road == nil {
		x.road = &rules.Explanation{}
	}
	y := &whyTeller{x, t}
	fmt.Fprintf(&x.text, "%s %s %s\n", paint(verdictColour(t.Verdict.Verdict), quoted(t.Verdict.Verdict)), quoted(t.Method), quoted(cmp.Or(t.URL, "(no host was learnt)")))
	x.step("Decision", "%s of %s", t.ID, t.Time.Format("2006-01-02T15:04:05.000000Z"))
	x.more("in %s", quoted(file))
	if t.Revises != "" {
		x.more("it takes back %s", t.Revises)
	}
	y.client()
	x.whoAsks()
	if t.Policy != nil {
		x.whoseRules()
		y.answer()
		x.whichGroups()
		x.whatIsJudged()
	}
	y.verdict()
	y.settings()
	y.ended()
	y.again()
	x.text.WriteByte('\n')
	_, err := io.WriteString(w, x.text.String())
	return err
}

func verdictColour(verdict string) string {
	switch verdict {
	case "allow":
		return green
	case "refuse":
		return red
	}
	return yellow
}

// recordedJudgement is what check would have said.
func recordedJudgement(t *replay.Told) *judgement {
	j := &judgement{
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
		j.By, j.Age, j.Stale, j.Profile, j.Robots = byRecord, t.Age, p.Stale, p.Profile, "its robots.txt"
		if o, _, err := parseURL(t.URL); err == nil {
			j.Robots = o.RobotsURL()
		}
		if p.Snapshot != nil && len(p.Snapshot.Chain) > 0 {
			j.Robots = p.Snapshot.Chain[0]
		}
		if p.Own {
			j.By = byOperator
		}
		j.Detail = cmp.Or(j.Detail, p.Error, p.Note)
	}
	return j
}

// whyTeller tells what a recorded decision has beside what check explains.
type whyTeller struct {
	*explainer
	told *replay.Told
}

// client tells who it was.
func (y *whyTeller) client() {
	t, text := y.told, quoted(y.told.Client)
	if t.Port > 0 {
		text += fmt.Sprintf(", port %d", t.Port)
	}
	if t.User != "" {
		text += ", user " + quoted(t.User)
	}
	if t.ClientName != "" {
		text += ", as the settings' " + quoted(t.ClientName)
	}
	if t.Mode == "observe" {
		text += ", only observed"
	}
	y.step("Client", "%s", text)
	if t.Declared || t.Sent != "" {
		y.more("it said it was %s", quoted(cmp.Or(t.UserAgent, "nobody")))
	}
	if t.Declared && t.Sent != "" {
		y.more("the site was shown %s", quoted(t.Sent))
	}
}

// answer tells the bytes that the rules were read from.
func (y *whyTeller) answer() {
	s := y.told.Policy.Snapshot
	switch {
	case s == nil:
		return
	case s.Zlib != nil:
		y.more("%s", plural(uint64(max(0, s.Size)), "byte"))
		y.more("sha256:%s", s.SHA256)
	}
	if s.Status != 0 {
		y.more("answered with status %d on %s", s.Status, s.FetchedAt.UTC().Format(time.RFC3339))
	}
	if len(s.Chain) > 1 {
		y.more("after redirects, by %s", quoted(s.Chain[len(s.Chain)-1]))
	}
	if s.AskedAs != "" {
		y.more("asked for as %s", quoted(s.AskedAs))
	}
}

// tellable are the reasons that check explains, too.
var tellable = []rules.Reason{
	rules.ReasonRule, rules.ReasonNoRule, rules.ReasonOverride, rules.ReasonNotACrawl, rules.ReasonUnnamed, rules.ReasonRobotsTxt,
	rules.ReasonRobotsUnavailable, rules.ReasonRobotsUnreachable, rules.ReasonOriginUnreachable, rules.ReasonDestination,
}

// verdict tells what came out, and the line behind it.
func (y *whyTeller) verdict() {
	t := y.told
	because := ""
	switch reason := rules.Reason(t.Reason); {
	case slices.Contains(tellable, reason):
		because = y.because()
	case reason == rules.ReasonHostOnly:
		because = "judged by its host alone: the paths in the tunnel are not seen"
		if t.Unseen > 0 {
			because += ", and " + plural(uint64(t.Unseen), "rule") + " might have refused some of them"
		}
	case reason == rules.ReasonPart:
		because = quoted(t.Settled)
	default:
		because = quoted(t.Reason)
		if t.Again == replay.NotByRules && t.Late == nil {
			because += ": " + t.What
		}
		because += y.remark()
	}
	y.step("Verdict", "%s: %s", y.paint(verdictColour(t.Verdict.Verdict), quoted(t.Verdict.Verdict)), because)
	if t.Verdict.Verdict == "would-refuse" {
		y.more("it was let through: nothing was to be refused")
	}
	if t.Late != nil {
		y.more("the verdict that followed: %s", toldVerdict(t.Late))
		y.Line = t.Late.Line
	}
	if t.Text != "" {
		y.more("line %d, byte for byte: %s", y.Line, quoted(t.Text))
	}
	if t.Redacted {
		y.more("values in the URL are kept as keyed hashes, so that it cannot be judged again")
	}
}

func (y *whyTeller) settings() {
	if y.told.Config != "" {
		y.step("Settings", "%s", quoted(y.told.Config))
	}
}

// ended tells what it waited for and how the exchange ended.
func (y *whyTeller) ended() {
	t := y.told
	if t.Delay > 0 || t.Waited >= worthTelling {
		y.step("Waited", "%s, for the rules and for its turn", inSeconds(t.Waited))
	}
	if t.Delay > 0 {
		y.more("a delay of %s is asked for", inSeconds(t.Delay))
	}
	o := t.Outcome
	if o == nil {
		y.step("Outcome", "not recorded: the exchange has not ended, or heed was killed before it did")
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
	y.step("Outcome", "%s, %s sent on, after %s", text, plural(uint64(o.BytesOut), "byte"), inSeconds(o.Duration))
	if o.Error != "" {
		y.more("%s", quoted(o.Error))
	}
}

// worthTelling is from how many seconds on a wait is one.
const worthTelling = 0.001

func inSeconds(s float64) time.Duration {
	return time.Duration(s * float64(time.Second)).Round(time.Microsecond)
}

// again tells what came of judging it again.
func (y *whyTeller) again() {
	t := y.told
	switch t.Again {
	case replay.Same:
		y.step("Again", "judged again by engine %d, it comes out the same", rules.Engine)
	case replay.NotByRules:
	case replay.Redacted:
		y.step("Again", "not replayable: redacted")
	case replay.Incomplete:
		y.step("Again", "not replayable: %s", quoted(t.What))
	default:
		y.step("Again", "judged again by engine %d, it comes out otherwise: %s", rules.Engine, toldVerdict(&t.Now))
		if t.What != "" {
			y.more("%s", quoted(t.What))
		}
	}
}
