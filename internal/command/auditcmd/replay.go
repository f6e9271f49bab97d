package auditcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"heed/internal/audit/replay"
	"heed/internal/audit/store"
	"heed/internal/check/why"
	"heed/internal/config"
	"heed/internal/config/route"
	"heed/internal/judge/signal"
	"heed/internal/output/console"
	"heed/rules"
)

// AuditReplayCmd is `heed audit replay`.
type AuditReplayCmd struct {
	recordFiles
	Profile string `placeholder:"NAME" help:"Compare with this profile: standard, strict, google or rep1994."`
	Agent   string `placeholder:"UA" help:"Compare as if every client had sent this User-Agent."`
	Policy  string `placeholder:"DIR" help:"Compare with the robots.txt files in DIR, each named by its host."`
	Purpose string `placeholder:"PURPOSE" help:"Report what sites would have refused for this purpose, such as training."`
	JSON    bool   `name:"json" help:"Print one JSON object per record."`

	found atomic.Bool // a file of Policy is that of a site in a record
}

// Run replays the records, one after the other.
func (c *AuditReplayCmd) Run(a *console.App) error {
	otherwise, leave, err := c.otherwise()
	if err != nil {
		return err
	}
	defer leave()
	purposes, err := signal.ParsePurposes(c.Purpose)
	if err != nil {
		return fmt.Errorf("--purpose: %w", err)
	}
	err = judgeEach(a, &c.recordFiles, "judging %s again", func(ctx context.Context, r *store.Record, progress func(done, all int64)) (*replay.Result, error) {
		return replay.Judge(ctx, r, replay.Options{ParseRules: config.RecordedRules, If: otherwise, Purposes: purposes, Progress: progress})
	}, func(r *replay.Result) (same bool, err error) {
		return r.Different == 0, c.print(a, r)
	})
	if status := console.Exit(0); c.Policy != "" && !c.found.Load() && (err == nil || errors.As(err, &status)) {
		err = fmt.Errorf("--policy: no file in %s is named by the host of a site in the record, so that nothing was judged otherwise\nName the files as in the list of sites of `heed audit report`: example.org or example.org.txt", console.Printable(c.Policy))
	}
	return err
}

// otherwise returns the conditions to compare with, as the flags set them; nil when
// there are none. leave, which is not nil without an error, closes what they use.
func (c *AuditReplayCmd) otherwise() (f *replay.If, leave func(), err error) {
	leave = func() {}
	if c.Profile == "" && c.Agent == "" && c.Policy == "" {
		return nil, leave, nil
	}
	f = &replay.If{Agent: c.Agent}
	if c.Profile != "" {
		if err := config.CheckProfile(c.Profile); err != nil {
			return nil, nil, fmt.Errorf("--profile: %w", err)
		}
		p, _ := rules.ParseProfile(c.Profile)
		f.Profile = &p
	}
	if c.Policy != "" {
		dir, err := os.OpenRoot(c.Policy)
		if err != nil {
			return nil, nil, fmt.Errorf("--policy: the directory cannot be opened: %w\nName one with files such as example.org.txt", err)
		}
		f.Policies, leave = c.policiesIn(dir), func() { _ = dir.Close() }
	}
	return f, leave, nil
}

// policiesIn returns a function that reads the robots.txt of an origin from dir: the
// file named by host and port, otherwise by the host.
func (c *AuditReplayCmd) policiesIn(dir *os.Root) func(rules.Origin) ([]byte, bool, error) {
	return func(o rules.Origin) ([]byte, bool, error) {
		for _, name := range []string{o.HostPort(), o.Host} {
			for _, ending := range []string{"", ".txt"} {
				body, err := dir.ReadFile(name + ending)
				if errors.Is(err, os.ErrNotExist) {
					continue
				}
				c.found.Store(true)
				if err == nil {
					err = rules.CheckFile(body)
				}
				if err != nil {
					err = fmt.Errorf("%s: %w", name+ending, err)
				}
				return body, err == nil, err
			}
		}
		return nil, false, nil
	}
}

func (c *AuditReplayCmd) print(a *console.App, r *replay.Result) error {
	if c.JSON {
		return console.NewJSON(a.Stdout).Encode(r)
	}
	p := &replayPrinter{paint: console.Colours(a.Environ, a.Stdout)}
	p.result(r)
	if r.If != nil {
		p.changes(r.If)
	}
	if r.Uses != nil {
		p.uses(r.Uses)
	}
	_, err := io.WriteString(a.Stdout, p.text.String())
	return err
}

// replayPrinter writes the result of a replay as text.
type replayPrinter struct {
	paint console.Painter
	text  strings.Builder
}

func (p *replayPrinter) line(format string, values ...any) {
	fmt.Fprintf(&p.text, format+"\n", values...)
}

func (p *replayPrinter) result(r *replay.Result) {
	word := p.paint(console.Green, "same")
	if r.Different > 0 {
		word = p.paint(console.Red, "different")
	}
	p.line("%s  %s: %s, judged again by engine %d", word, console.Quoted(r.File), console.Plural(uint64(r.Entries), "decision"), r.Engine)
	p.count(r.Same, "came out the same: verdict, reason, group, rule and line")
	p.count(r.Different, "came out otherwise")
	p.count(r.OtherEngine, "came out otherwise, decided by an engine of another number: the rules of heed have changed since")
	p.count(r.Redacted, "not replayable: redacted")
	p.count(r.Incomplete, "not replayable: the record does not have all they rest on")
	p.count(r.NotByRules, "rest on no robots.txt:")
	for _, w := range r.Why {
		if w.Class == replay.NotByRules {
			p.line("             %9d  %s: %s", w.Count, console.Quoted(w.Reason), w.Why)
		}
	}
	p.count(r.Late, "verdicts that followed their requests are among them")
	p.count(r.Withheld, "pages were delivered that would be withheld now: their Content-Signal field was recorded only, and is obeyed since")
	p.count(r.Exempt, "requests of exempt clients are only counted")
	for _, w := range r.Why {
		if w.Why != "" && (w.Class == replay.Different || w.Class == replay.Incomplete) {
			p.line("  %s", console.Quoted(fmt.Sprintf("%d of %s: %s", w.Count, w.Reason, w.Why)))
		}
	}
	p.examples(r.Examples, "recorded", "now")
}

// count writes a line with n, unless n is 0.
func (p *replayPrinter) count(n int64, what string) {
	if n > 0 {
		p.line("  %9d  %s", n, what)
	}
}

func (p *replayPrinter) examples(all []replay.Example, was, is string) {
	for _, x := range all {
		p.line("  %s  %s  %s", x.ID, x.Time.Format(time.RFC3339), console.Quoted(x.URL))
		p.line("      %-9s %s", was, why.VerdictText(&x.Recorded, console.ReasonText))
		p.line("      %-9s %s", is, why.VerdictText(&x.Now, console.ReasonText))
	}
}

func (p *replayPrinter) changes(c *replay.Changes) {
	p.line("what would have been otherwise, of %s:", console.Plural(uint64(c.Judged), "decision"))
	p.line("  %9d  refused that was allowed", c.Refused)
	p.line("  %9d  allowed that was refused", c.Allowed)
	p.line("  %9d  the same for another reason, or by another rule", c.Otherwise)
	why.Listed(c.Sites, func(_ int, s *replay.SiteChange) {
		p.line("  %s: %d refused, %d allowed", console.Quoted(s.Site), s.Refused, s.Allowed)
	}, func(n int) { p.line("  and %s", console.Plural(uint64(n+c.Further), "further site")) })
	p.examples(c.Examples, "recorded", "otherwise")
}

// AuditRecheckCmd is `heed audit recheck`.
type AuditRecheckCmd struct {
	recordFiles
	Host string `placeholder:"PATTERN" help:"Select these hosts: example.org, or *.example.org for all below it."`
	JSON bool   `name:"json" help:"Print one JSON object per record, with every URL."`
}

// Run rechecks the records, one after the other.
func (c *AuditRecheckCmd) Run(a *console.App) error {
	if err := checkHost("--host", c.Host); err != nil {
		return err
	}
	cfg, err := c.Load(a)
	if err != nil {
		return err
	}
	out, err := route.Open(cfg, a.Environ, route.Options{}) // without stored copies
	if err != nil {
		return err
	}
	return judgeEach(a, &c.recordFiles, "rechecking %s", func(ctx context.Context, r *store.Record, progress func(done, all int64)) (*replay.Rechecked, error) {
		check := replay.Recheck{ParseRules: config.RecordedRules, Host: strings.ToLower(c.Host), Policy: out.Policies.Policy, Width: console.FetchWidth, Progress: progress}
		return check.Run(ctx, r)
	}, func(r *replay.Rechecked) (allowed bool, err error) {
		return r.Refused == 0, c.print(a, r)
	})
}

func (c *AuditRecheckCmd) print(a *console.App, r *replay.Rechecked) error {
	if c.JSON {
		return console.NewJSON(a.Stdout).Encode(r)
	}
	p := &replayPrinter{paint: console.Colours(a.Environ, a.Stdout)}
	word := p.paint(console.Green, "allowed")
	if r.Refused > 0 {
		word = p.paint(console.Red, "refused")
	}
	p.line("%s  %s: %s to %s were allowed", word, console.Quoted(r.File), console.Plural(uint64(r.Allowed), "request"), console.Plural(uint64(r.Sites), "site"))
	p.line("  %9d  would be refused now", r.Refused)
	p.count(r.Unknown, "to sites that cannot be asked now")
	p.count(r.Redacted, "not replayable: redacted")
	p.count(r.Incomplete, "not replayable: the record does not have all they rest on")
	for _, h := range r.Hosts {
		p.site(&h)
	}
	_, err := io.WriteString(a.Stdout, p.text.String())
	return err
}

// site prints the requests to one site that would be refused now.
func (p *replayPrinter) site(h *replay.SiteNow) {
	if h.Error != "" {
		p.line("  %s: %s cannot be judged: %s", console.Quoted(h.Site), console.Plural(uint64(h.Allowed), "request"), console.Quoted(h.Error))
		return
	}
	p.line("  %s: %d of %s", console.Quoted(h.Site), h.Refused, console.Plural(uint64(h.Allowed), "request"))
	why.Listed(h.Rules, func(_ int, r *replay.RuleNow) {
		p.line("      %6d  line %d, %s, group %s", r.Count, r.Line, console.Quoted(r.Rule), console.Quoted(r.Group))
	}, func(n int) { p.line("      and %s", console.Plural(uint64(n), "further rule")) })
	why.Listed(h.URLs, func(_ int, u *replay.Refetched) { p.line("      %6d  %s", u.Count, console.Quoted(u.URL)) },
		func(n int) { p.line("      and %s; --json lists them", console.Plural(uint64(n), "further URL")) })
}

// statementText returns a statement with its place.
func statementText(x *replay.StatementUse) string {
	text := console.Quoted(x.URL)
	if x.Line > 0 {
		text += fmt.Sprintf(", line %d", x.Line)
	}
	return console.Quoted(x.Text) + " (" + text + ")"
}

// uses prints what would have become of requests for other purposes.
func (p *replayPrinter) uses(u *replay.Uses) {
	var names []string
	for _, purpose := range u.Purposes {
		names = append(names, string(purpose))
	}
	p.line("if the clients had stated the purpose %s, of %s that robots.txt allows:", strings.Join(names, ", "), console.Plural(uint64(u.Judged), "request"))
	p.line("  %9d  refused by what the site states", u.Refused)
	p.line("  %9d  allowed: all that could refuse them was read", u.Allowed)
	p.count(u.Silent, "silent: all that could refuse them was read, and the site states nothing")
	p.count(u.Unknown, "unknown, since not all was read:")
	for _, w := range u.Unknowns {
		p.line("             %9d  %s", w.Count, w.Why)
	}
	p.count(u.NotRecorded, "not recorded: the answer was no page, and the record has no statement of the site")
	if len(u.Categories) > 1 {
		for _, c := range u.Categories {
			p.line("  %s (%s): %d refused, %d allowed, %d silent, %d unknown, %d not recorded", c.Purpose, c.Category, c.Refused, c.Allowed, c.Silent, c.Unknown, c.NotRecorded)
		}
	}
	why.Listed(u.Sites, func(_ int, s *replay.SiteUse) { p.usesOf(s) },
		func(n int) { p.line("  and %s", console.Plural(uint64(n+u.Further), "further site")) })
}

// usesOf prints the requests to one site, and the statements that would have refused them.
func (p *replayPrinter) usesOf(s *replay.SiteUse) {
	p.line("  %s: %d of %s refused", console.Quoted(s.Site), s.Refused, console.Plural(uint64(s.Judged), "request"))
	others := s.OtherStatements
	for i := range s.Statements {
		x := &s.Statements[i]
		if i >= why.MaxListed {
			others += x.Count
			continue
		}
		text := console.Quoted(x.Detail)
		if x.Text != "" {
			text += ": " + statementText(x)
		}
		p.line("      %6d  %s", x.Count, text)
	}
	if others > 0 {
		p.line("      %6d  by other statements; --json lists more of them", others)
	}
}
