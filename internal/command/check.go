package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"heed/rules"
)

// CheckCmd is `heed check`: judges URLs as the proxy would.
type CheckCmd struct {
	Config  string   `short:"c" env:"HEED_CONFIG" placeholder:"FILE" help:"Read settings from FILE instead of ./proxy.toml."`
	Robots  string   `placeholder:"FILE" help:"Judge against this robots.txt instead of the sites' own; - for stdin."`
	Agent   *string  `short:"a" placeholder:"UA" help:"Who asks: a User-Agent string, or a product token such as ExampleBot."`
	Client  string   `placeholder:"NAME" help:"Ask as the [[client]] of that name, instead of the one that the User-Agent fits."`
	Profile string   `placeholder:"NAME" help:"Read robots.txt as standard, strict, google or rep1994 have it, instead of the configured one."`
	Local   bool     `help:"Judge here, not in the running heed: by the settings here, and by stored copies that are fresh."`
	Fresh   bool     `help:"Judge here, and fetch each robots.txt now, whatever is stored."`
	Batch   bool     `help:"Read questions from stdin and write answers to stdout, as JSON Lines."`
	Explain bool     `help:"Tell the road from the User-Agent to the verdict."`
	JSON    bool     `name:"json" help:"Print one JSON object per URL."`
	Quiet   bool     `short:"q" help:"Print nothing; the exit status tells."`
	URLs    []string `arg:"" optional:"" name:"url" help:"The URLs to judge."`
}

// Help tells the output, the exit status and the form of a batch.
func (c *CheckCmd) Help() string {
	return `Prints a line per URL: allow or refuse, the URL, and why, with the rule, its line
and its group, then where the rules are from and how old they are. A heed that
runs is asked, so that its settings and what it has fetched decide; else a stored
copy counts while it is fresh, and what is not stored is fetched as the proxy
would. Exit status 0 when all are allowed, 1 when any is refused, 2 when the
question is wrong.

Examples:

    heed check --agent ExampleBot https://example.org/private/
    heed check --robots robots.txt --agent 'ExampleBot/2.1' https://example.org/a
    heed check --explain --agent 'Mozilla/5.0 (compatible; ExampleBot/2.1)' https://example.org/

With --batch each line of stdin is an object with agent, url and, unless
--robots names a file or the site's own is meant, robots (its text) or
robots_b64. Each line of stdout is the answer: allowed, reason, group, rule and
line; further members come back as they were. A line that is no such object is
answered by one with error, and the exit status is 2 in the end, else 0.

    echo '{"robots":"User-agent: *\nDisallow: /a","agent":"x","url":"http://h.test/a"}' |
        heed check --batch`
}

// checkWidth is how many URLs are judged at the same time when each may need
// a fetch.
const checkWidth = 64

// Run judges the URLs.
func (c *CheckCmd) Run(a *App) error {
	if err := c.usage(); err != nil {
		return err
	}
	ask, err := c.asker(a)
	if err != nil {
		return err
	}
	if c.Batch {
		return c.batch(a, ask)
	}
	type result struct {
		*judgement
		err error
	}
	worst, paint := 0, colours(a.Environ, a.Stdout)
	work := func(address string) (r result) {
		r.judgement, r.err = ask(context.Background(), *c.Agent, address)
		return r
	}
	err = inOrder(checkWidth, slices.Values(c.URLs), work, func(r result, _ bool) error {
		if r.err != nil {
			a.complain(r.err)
			worst = exitUsage
			return nil
		}
		if !r.Allowed {
			worst = max(worst, exitNo)
		}
		return c.print(a.Stdout, paint, r.judgement)
	})
	if err == nil && worst != 0 {
		return Exit(worst)
	}
	return err
}

func (c *CheckCmd) usage() error {
	switch {
	case c.Local && c.Fresh, c.Robots != "" && (c.Local || c.Fresh):
		return errors.New("--robots, --local and --fresh are three different sources of rules\nLeave all but one out")
	case c.Profile != "" && checkProfile(c.Profile) != nil:
		return fmt.Errorf("--profile: %w", checkProfile(c.Profile))
	case c.Batch && len(c.URLs) > 0:
		return errors.New("--batch takes its URLs from stdin\nLeave out the URLs, or --batch")
	case c.Batch && c.Robots == "-":
		return errors.New("--batch and --robots - would both read stdin\nName a file")
	case c.Batch && c.Agent != nil:
		return errors.New("--batch takes the agent from each line\nLeave out --agent, or --batch")
	case c.Explain && (c.Batch || c.JSON):
		return errors.New("--explain is for people, --json and --batch are for programs\nLeave one of them out")
	case c.Client != "" && (c.Batch || c.Robots != ""):
		return errors.New("--client names an entry of the settings, which --batch and --robots do without\nLeave one of them out")
	case c.Batch:
		return nil
	case len(c.URLs) == 0:
		return errors.New("there is no URL to check\nWrite one, such as: heed check --agent ExampleBot https://example.org/page")
	case c.Agent == nil:
		return errors.New("it depends on who asks\nAdd --agent with a User-Agent string or a product token, such as --agent ExampleBot")
	}
	return nil
}

// print writes one answer for people or as JSON.
func (c *CheckCmd) print(w io.Writer, paint painter, a *judgement) error {
	if c.Quiet {
		return nil
	}
	if c.JSON {
		return newJSON(w).Encode(a)
	}
	colour, verdict := red, "refuse"
	if a.Allowed {
		colour, verdict = green, "allow "
	}
	_, err := fmt.Fprintf(w, "%s %s  %s: %s\n", paint(colour, verdict), printable(a.URL), a.Reason, a.why())
	if err == nil && c.Explain {
		err = a.explain(w, paint)
	}
	return err
}

// why says in words what the decision rests on.
func (a *judgement) why() string {
	var why strings.Builder
	switch a.Reason {
	case rules.ReasonRule:
		fmt.Fprintf(&why, "line %d, %s", a.Line, quoted(a.Rule))
	case rules.ReasonNoRule:
		why.WriteString("no rule speaks of it")
	case rules.ReasonRobotsTxt:
		why.WriteString("robots.txt may always be asked for")
	case rules.ReasonOverride:
		fmt.Fprintf(&why, "%s, an exception (%s)", quoted(a.Rule), quoted(a.Settled))
	case rules.ReasonNotACrawl:
		fmt.Fprintf(&why, "it is called and not crawled (%s), so nothing is judged", quoted(a.Settled))
	case rules.ReasonExempt:
		why.WriteString("this client is people, who are not judged")
	case rules.ReasonUnnamed:
		why.WriteString("this client has to say who it is")
	case rules.ReasonRobotsUnavailable:
		why.WriteString("the site has no robots.txt")
	case rules.ReasonRobotsUnreachable:
		if a.tooWild() {
			return a.Detail + "; all but /robots.txt is refused (" + a.source() + ")"
		}
		why.WriteString("robots.txt cannot be had")
	case rules.ReasonOriginUnreachable:
		why.WriteString("the site cannot be reached")
	case rules.ReasonDestination:
		why.WriteString("heed may not reach it")
	default:
		why.WriteString("the URL cannot be judged")
	}
	if a.Group != "" {
		fmt.Fprintf(&why, ", group %s", quoted(a.Group))
	}
	if a.Variant != "" {
		fmt.Fprintf(&why, ", in another spelling of the path (%s)", a.Variant)
	}
	if a.Detail != "" {
		fmt.Fprintf(&why, " (%s)", quoted(a.Detail))
	}
	if source := a.source(); source != "" {
		fmt.Fprintf(&why, " (%s)", source)
	}
	if a.Mode != "" && !a.Allowed {
		why.WriteString(" (only observed: let through)")
	}
	return why.String()
}
