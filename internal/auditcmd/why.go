package auditcmd

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"heed/internal/audit/replay"
	"heed/internal/audit/store"
	"heed/internal/check"
	"heed/internal/config"
	"heed/internal/console"
	"heed/internal/control"
	"heed/internal/pageurl"
	"heed/internal/safetext"
	"heed/rules"
)

// WhyCmd is `heed why`: explains one recorded decision.
type WhyCmd struct {
	config.FileFlags
	File   []string `short:"f" placeholder:"FILE" help:"Search these records (default: this heed's own)."`
	At     string   `placeholder:"TIME" help:"With a URL: search up to TIME: 2026-05-03T14:00:00Z, or 36h ago."`
	Client string   `placeholder:"NAME" help:"With a URL: search only this client: address, [[client]], user or agent."`
	JSON   bool     `name:"json" help:"Print one JSON object with every field."`

	What string `arg:"" name:"id|url" help:"The id of a decision or its beginning, or the URL that was requested."`
}

// Help describes the explanation and where ids are found.
func (WhyCmd) Help() string {
	return `Explains one decision like heed check --explain, with everything behind it: the
client, the bytes of the line of robots.txt, the file's hash and age, what the site
states about the use of the page, the settings, the waiting time and the outcome. The
decision is also judged again.

Ids are in every refusal, in the log and in heed audit list. The beginning of an id,
at least 6 digits, is enough where no other one has it; else they are listed, and
heed exits with 2. For a URL, the last decision is explained; values that the record
keeps as hashes are not compared. Exits with 1 when there is none.

  heed why 01a1ff09-53aa-7c7f-9f91-703e878567fa
  heed why https://example.org/page --at 2026-05-03T14:00:00Z --client newsbot`
}

// Run finds the decision and prints its explanation.
func (c *WhyCmd) Run(a *console.App) error {
	find, err := c.finder(a.Now())
	if err != nil {
		return err
	}
	records, err := (&recordFiles{FileFlags: c.FileFlags, Files: c.File}).open(a)
	if err != nil {
		return err
	}
	ctx, stop := interruptible()
	defer stop()
	if err := c.completeID(ctx, a, records); err != nil {
		return err
	}
	file, found, err := c.search(ctx, a, records, find)
	for wait := time.Duration(0); err == nil && found == nil && wait < completionTime && c.recent(a.Now()); wait += searchInterval {
		time.Sleep(searchInterval)
		file, found, err = c.search(ctx, a, records, find)
	}
	if err != nil {
		return err
	}
	if found == nil {
		fmt.Fprintf(a.Stderr, "heed: the record has no decision on %s\n`heed audit list` shows those it has\n", console.Quoted(c.What))
		return console.Exit(console.ExitNo)
	}
	if c.likely(found) {
		fmt.Fprintln(a.Stderr, "heed: the record keeps values of this URL as keyed hashes; this is the last decision on a URL that differs from it in such values at most")
	}
	if c.JSON {
		return console.NewJSON(a.Stdout).Encode(struct {
			File string `json:"file"`
			*replay.Explained
		}{file, found})
	}
	return printWhy(a.Stdout, console.Colours(a.Environ, a.Stdout), file, found)
}

// A decision is in the record at most completionTime after it was made. Until then
// a search for it is repeated, so that a refusal just received can be explained.
const (
	completionTime = 2 * time.Second
	searchInterval = 200 * time.Millisecond
)

// recent reports whether What is the id of a decision that may not be in the record
// yet.
func (c *WhyCmd) recent(now time.Time) bool {
	id, err := hex.DecodeString(strings.ReplaceAll(c.What, "-", ""))
	if err != nil || len(id) != 16 || id[6]>>4 != 7 {
		return false
	}
	var at uint64 // milliseconds since 1970 (RFC 9562 §5.7)
	for _, octet := range id[:6] {
		at = at<<8 | uint64(octet)
	}
	age := now.Sub(time.UnixMilli(int64(at)))
	return -completionTime < age && age < 2*completionTime
}

// search searches all records and returns the latest decision found, with the path
// of its record; found is nil when there is none.
func (c *WhyCmd) search(ctx context.Context, a *console.App, records []*store.Record, find finder) (file string, found *replay.Explained, err error) {
	for _, r := range records {
		_, end := a.Bar("searching " + console.Quoted(r.Path))
		d, err := find(ctx, r)
		end()
		if errors.Is(err, replay.ErrNone) {
			continue
		}
		if err != nil {
			return "", nil, fmt.Errorf("%s: %w", console.Quoted(r.Path), err)
		}
		if found == nil || found.Time.Before(d.Time) {
			found, file = d, r.Path
		}
	}
	return file, found, nil
}

// finder searches one record for a decision. Without one the error is
// replay.ErrNone.
type finder func(context.Context, *store.Record) (*replay.Explained, error)

// finder returns the search for the id or the URL.
func (c *WhyCmd) finder(now time.Time) (finder, error) {
	if !strings.Contains(c.What, "://") {
		if c.At != "" || c.Client != "" {
			return nil, errors.New("--at and --client choose among the decisions on a URL, and an id names a single one\nLeave them out, or write the URL with http:// or https://")
		}
		return func(ctx context.Context, r *store.Record) (*replay.Explained, error) {
			return replay.ExplainID(ctx, r, config.RecordedRules, c.What)
		}, nil
	}
	origin, target, err := pageurl.Parse(safetext.ParseOctets(c.What)) // as heed audit list prints it
	if err != nil {
		return nil, err
	}
	f := store.Filter{Client: c.Client}
	if f.To, err = parseTime("--at", c.At, now); err != nil {
		return nil, err
	}
	if !f.To.IsZero() {
		f.To = f.To.Add(time.Second) // times are given in seconds: include all of the last one
	}
	targets := []string{target}
	if _, other, err := pageurl.Parse(c.What); err == nil && other != target { // as it was sent
		targets = append(targets, other)
	}
	if other := escapedTarget(c.What); !slices.Contains(targets, other) {
		targets = append(targets, other)
	}
	return func(ctx context.Context, r *store.Record) (t *replay.Explained, err error) {
		for _, target := range targets {
			if t, err = replay.ExplainURL(ctx, r, config.RecordedRules, origin, target, f); !errors.Is(err, replay.ErrNone) {
				return t, err
			}
		}
		return explainRedacted(ctx, r, origin, targets, f)
	}, nil
}

// printWhy explains a decision, one paragraph per step.
func printWhy(w io.Writer, paint console.Painter, file string, t *replay.Explained) error {
	x := &check.Explainer{Judgement: recordedJudgement(t), Road: t.Road, Paint: paint}
	if x.Road == nil {
		x.Road = &rules.Explanation{}
	}
	y := &whyPrinter{x, t}
	fmt.Fprintf(&x.Text, "%s %s %s\n", paint(verdictColour(t.Verdict.Verdict), console.Quoted(t.Verdict.Verdict)), console.Quoted(t.Method), console.Quoted(cmp.Or(t.URL, "(unknown host)")))
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
	y.use()
	y.verdict()
	y.settings()
	y.outcome()
	y.replayed()
	x.Text.WriteByte('\n')
	_, err := io.WriteString(w, x.Text.String())
	return err
}

func verdictColour(verdict string) string {
	switch verdict {
	case "allow":
		return console.Green
	case "refuse":
		return console.Red
	}
	return console.Yellow
}

// escapedTarget returns the target of a URL as browsers and older records spell it:
// octets that a URL may not contain are escapes.
func escapedTarget(address string) string {
	u, err := url.Parse(pageurl.EscapePercents(address))
	if err != nil {
		return ""
	}
	return u.RequestURI()
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

// whyPrinter prints the fields of a recorded decision that heed check does not have.
type whyPrinter struct {
	*check.Explainer
	decision *replay.Explained
}

// client prints the client and the User-Agents that it sent and that the site got.
func (y *whyPrinter) client() {
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
	if t.Declared || t.Sent != "" {
		y.More("it sent User-Agent: %s", console.Quoted(cmp.Or(t.UserAgent, "(none)")))
	}
	if t.Declared && t.Sent != "" {
		y.More("the site received User-Agent: %s", console.Quoted(t.Sent))
	}
}

// snapshot prints the size, hash and origin of the bytes of the robots.txt.
func (y *whyPrinter) snapshot() {
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
func (y *whyPrinter) verdict() {
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
	y.Step("Verdict", "%s: %s", y.Paint(verdictColour(t.Verdict.Verdict), console.Quoted(t.Verdict.Verdict)), because)
	if t.Verdict.Verdict == "would-refuse" {
		y.More("it was let through: heed only observed")
	}
	if t.Late != nil {
		y.More("the verdict that followed: %s", verdictText(t.Late))
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

func (y *whyPrinter) settings() {
	if y.decision.Config != "" {
		y.Step("Settings", "%s", console.Quoted(y.decision.Config))
	}
}

// outcome prints the waiting time and the outcome of the exchange.
func (y *whyPrinter) outcome() {
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
func (y *whyPrinter) replayed() {
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
		y.Step("Again", "judged again by engine %d, it comes out otherwise: %s", rules.Engine, verdictText(&t.Now))
		if t.What != "" {
			y.More("%s", console.Quoted(t.What))
		}
	}
}
