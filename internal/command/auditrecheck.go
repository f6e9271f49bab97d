package command

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"heed/internal/audit/replay"
	"heed/rules"
)

// AuditRecheckCmd is `heed audit recheck`.
type AuditRecheckCmd struct {
	recordFiles
	Config string `short:"c" env:"HEED_CONFIG" placeholder:"FILE" help:"Read settings from FILE instead of ./proxy.toml: they say how sites are reached."`
	Host   string `placeholder:"PATTERN" help:"About these hosts alone: example.org, or *.example.org for all below it."`
	JSON   bool   `name:"json" help:"Print one JSON object per record, with all addresses."`
}

// Help says what is asked and how it ends.
func (AuditRecheckCmd) Help() string {
	return `Asks every site of the record for its robots.txt, as the proxy would (under heed's
own name, a few at a time, within its bounds), and judges the requests that were
allowed again by what it says now. Names, settings and exceptions are those of
their time, so that what differs is the site's will.

Sites that cannot be asked now are listed, and nothing is said of their requests.
Exit status 0 when all requests would be allowed, 1 when some would be refused, 2
when a record cannot be read.

  heed audit recheck crawl.db
  heed audit recheck --host '*.example.org' --json`
}

// Run rechecks the records, one after the other.
func (c *AuditRecheckCmd) Run(a *App) error {
	records, leave, err := c.open(a)
	if err != nil {
		return err
	}
	defer leave()
	policy, err := c.policies(a)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	status := error(nil)
	for _, r := range records {
		progress, end := a.bar("rechecking " + quoted(r.Name))
		check := replay.Recheck{Books: bookInForce, Host: strings.ToLower(c.Host), Policy: policy, Width: checkWidth, Progress: progress}
		result, err := check.Run(ctx, r.DB)
		end()
		if err != nil {
			return fmt.Errorf("%s cannot be rechecked: %w", quoted(r.Name), err)
		}
		if result.Refused > 0 {
			status = Exit(exitNo)
		}
		if err := c.print(a, r.Name, result); err != nil {
			return err
		}
	}
	return status
}

// policies asks the sites themselves, whatever is stored of them.
func (c *AuditRecheckCmd) policies(a *App) (func(context.Context, rules.Origin) *rules.Policy, error) {
	cfg, err := Load(c.Config, a.Defaults)
	if err != nil {
		return nil, err
	}
	ways, err := newEgresses(cfg, a.Environ)
	if err != nil {
		return nil, err
	}
	out, err := ways.take(way{})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, o rules.Origin) *rules.Policy { return out.policies.Policy(ctx, o, "") }, nil
}

func (c *AuditRecheckCmd) print(a *App, file string, r *replay.Rechecked) error {
	if c.JSON {
		return newJSON(a.Stdout).Encode(struct {
			File string `json:"file"`
			*replay.Rechecked
		}{file, r})
	}
	p := &replayPrinter{paint: colours(a.Environ, a.Stdout)}
	word := p.paint(green, "allowed")
	if r.Refused > 0 {
		word = p.paint(red, "refused")
	}
	p.line("%s  %s: %s to %s were allowed", word, quoted(file), plural(uint64(r.Allowed), "request"), plural(uint64(r.Sites), "site"))
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

// site tells of a site what would be refused now.
func (p *replayPrinter) site(h *replay.SiteNow) {
	if h.Error != "" {
		p.line("  %s: %s cannot be judged: %s", quoted(h.Site), plural(uint64(h.Allowed), "request"), quoted(h.Error))
		return
	}
	p.line("  %s: %d of %s", quoted(h.Site), h.Refused, plural(uint64(h.Allowed), "request"))
	for i, r := range h.Rules {
		if i == maxTold {
			p.line("      and %s", plural(uint64(len(h.Rules)-maxTold), "further rule"))
			break
		}
		p.line("      %6d  line %d, %s, group %s", r.Count, r.Line, quoted(r.Rule), quoted(r.Group))
	}
	for i, u := range h.URLs {
		if i == maxTold {
			p.line("      and %s; --json lists them", plural(uint64(len(h.URLs)-maxTold), "further URL"))
			break
		}
		p.line("      %6d  %s", u.Count, quoted(u.URL))
	}
}
