package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"heed/internal/audit/replay"
	"heed/rules"
)

// AuditReplayCmd is `heed audit replay`.
type AuditReplayCmd struct {
	recordFiles
	Profile string `placeholder:"NAME" help:"Say what would have been decided under this profile: standard, strict, google or rep1994."`
	Agent   string `placeholder:"UA" help:"Say what would have been decided if every client had shown this User-Agent."`
	Policy  string `placeholder:"DIR" help:"Say what would have been decided by the robots.txt files in DIR, each named by its host."`
	JSON    bool   `name:"json" help:"Print one JSON object per record."`
}

// Help says what is judged again, what is not, and how it ends.
func (AuditReplayCmd) Help() string {
	return `Judges every decision again: its target, under its agent's names, by the bytes of
the robots.txt and the settings that the record has of that moment. Verdict,
reason, group, rule and line must come out the same. What rests on no robots.txt
(who may use the proxy, addresses that may not be reached, bounds that were
reached) is counted by its reason; what the record does not have, such as values
of a query that must not be kept, is said and not guessed.

Every decision has the number of the engine that made it. Where another number
leads to something else, the rules of heed have changed since: that is reported
apart and is no damage.

With --profile, --agent or --policy it also says what would have been decided
otherwise. DIR holds files such as example.org or example.org:8443, with or
without .txt at the end; other sites keep the file that was recorded.

Exit status 0 when all came out the same or was decided by another engine, 1 when
something did not, 2 when a record cannot be read.

  heed audit replay
  heed audit replay --profile strict crawl.db
  heed audit replay --policy new-rules/ --json crawl.db`
}

// Run judges the records again, one after the other.
func (c *AuditReplayCmd) Run(a *App) error {
	otherwise, leave, err := c.otherwise()
	if err != nil {
		return err
	}
	defer leave()
	records, leave, err := c.open(a)
	if err != nil {
		return err
	}
	defer leave()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	status := error(nil)
	for _, r := range records {
		progress, end := a.bar("judging " + quoted(r.Name) + " again")
		result, err := replay.Judge(ctx, r.DB, replay.Options{Books: bookInForce, If: otherwise, Progress: progress})
		end()
		if err != nil {
			return fmt.Errorf("%s cannot be judged again: %w", quoted(r.Name), err)
		}
		if result.Different > 0 {
			status = Exit(exitNo)
		}
		if err := c.print(a, r.Name, result); err != nil {
			return err
		}
	}
	return status
}

// otherwise is what the flags ask to have been otherwise; nil: nothing.
func (c *AuditReplayCmd) otherwise() (f *replay.If, leave func(), err error) {
	leave = func() {}
	if c.Profile == "" && c.Agent == "" && c.Policy == "" {
		return nil, leave, nil
	}
	f = &replay.If{Agent: c.Agent}
	if c.Profile != "" {
		if err := checkProfile(c.Profile); err != nil {
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
		f.Policies, leave = policiesIn(dir), func() { _ = dir.Close() }
	}
	return f, leave, nil
}

// policiesIn finds the robots.txt of an origin in a directory, by its host and
// port, else by its host.
func policiesIn(dir *os.Root) func(rules.Origin) ([]byte, bool, error) {
	return func(o rules.Origin) ([]byte, bool, error) {
		for _, name := range []string{o.HostPort(), o.Host} {
			for _, ending := range []string{"", ".txt"} {
				body, err := dir.ReadFile(name + ending)
				if errors.Is(err, os.ErrNotExist) {
					continue
				}
				return body, err == nil, err
			}
		}
		return nil, false, nil
	}
}

func (c *AuditReplayCmd) print(a *App, file string, r *replay.Result) error {
	if c.JSON {
		return newJSON(a.Stdout).Encode(struct {
			File string `json:"file"`
			*replay.Result
		}{file, r})
	}
	p := &replayPrinter{paint: colours(a.Environ, a.Stdout)}
	p.result(file, r)
	if r.If != nil {
		p.changes(r.If)
	}
	_, err := io.WriteString(a.Stdout, p.text.String())
	return err
}

// replayPrinter writes what came of judging again, for people.
type replayPrinter struct {
	paint painter
	text  strings.Builder
}

func (p *replayPrinter) line(format string, values ...any) {
	fmt.Fprintf(&p.text, format+"\n", values...)
}

func (p *replayPrinter) result(file string, r *replay.Result) {
	word := p.paint(green, "same")
	if r.Different > 0 {
		word = p.paint(red, "different")
	}
	p.line("%s  %s: %s, judged again by engine %d", word, quoted(file), plural(uint64(r.Entries), "decision"), r.Engine)
	p.count(r.Same, "came out the same: verdict, reason, group, rule and line")
	p.count(r.Different, "came out otherwise")
	p.count(r.OtherEngine, "came out otherwise, decided by an engine of another number: the rules of heed have changed since")
	p.count(r.Redacted, "not replayable: redacted")
	p.count(r.Incomplete, "not replayable: the record does not have all they rest on")
	p.count(r.NotByRules, "rest on no robots.txt:")
	for _, w := range r.Why {
		if w.Class == replay.NotByRules {
			p.line("             %9d  %s: %s", w.Count, quoted(w.Reason), w.Why)
		}
	}
	p.count(r.Late, "verdicts that followed their requests are among them")
	p.count(r.Exempt, "requests of exempt clients are only counted")
	for _, w := range r.Why {
		if w.Why != "" && (w.Class == replay.Different || w.Class == replay.Incomplete) {
			p.line("  %s", quoted(fmt.Sprintf("%d of %s: %s", w.Count, w.Reason, w.Why)))
		}
	}
	p.examples(r.Examples, "recorded", "now")
}

// count writes how many there are of something, if there are any.
func (p *replayPrinter) count(n int64, what string) {
	if n > 0 {
		p.line("  %9d  %s", n, what)
	}
}

func (p *replayPrinter) examples(all []replay.Example, was, is string) {
	for _, x := range all {
		p.line("  %s  %s  %s", x.ID, x.Time.Format(time.RFC3339), quoted(x.URL))
		p.line("      %-9s %s", was, toldVerdict(&x.Recorded))
		p.line("      %-9s %s", is, toldVerdict(&x.Now))
	}
}

// toldVerdict says a verdict in a line.
func toldVerdict(v *replay.Verdict) string {
	if v.Verdict == "" {
		return "nothing: it could not be judged"
	}
	text := v.Verdict + " (" + v.Reason
	if v.Rule != "" {
		text += fmt.Sprintf(": line %d, %s", v.Line, v.Rule)
	}
	if v.Group != "" {
		text += ", group " + v.Group
	}
	if v.Variant != "" {
		text += ", in another spelling (" + v.Variant + ")"
	}
	if v.Settled != "" {
		text += ", " + v.Settled
	}
	return quoted(text + ")")
}

func (p *replayPrinter) changes(c *replay.Changes) {
	p.line("what would have been otherwise, of %s:", plural(uint64(c.Judged), "decision"))
	p.line("  %9d  refused that was allowed", c.Refused)
	p.line("  %9d  allowed that was refused", c.Allowed)
	p.line("  %9d  the same for another reason, or by another rule", c.Otherwise)
	for i, s := range c.Sites {
		if i == maxTold {
			p.line("  and %s", plural(uint64(len(c.Sites)-maxTold+c.Further), "further site"))
			break
		}
		p.line("  %s: %d refused, %d allowed", quoted(s.Site), s.Refused, s.Allowed)
	}
	p.examples(c.Examples, "recorded", "otherwise")
}
