// Package check judges URLs outside a request: heed check, its batches and its
// explanations, and heed lint.
package check

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"heed/internal/check/why"
	"heed/internal/config"
	"heed/internal/control"
	"heed/internal/judge/acl"
	"heed/internal/output/console"
)

// CheckCmd is `heed check`: judges URLs as the proxy would.
type CheckCmd struct {
	config.FileFlags
	acl.Terms
	Robots  string   `placeholder:"FILE" help:"Judge by this robots.txt instead of the site's; - is stdin."`
	Agent   *string  `short:"a" placeholder:"UA" help:"Judge this client: a User-Agent or product token. Needed without --batch."`
	Client  string   `placeholder:"NAME" help:"Judge as the [[client]] NAME, whichever the User-Agent matches."`
	Profile string   `placeholder:"NAME" help:"Use this profile: standard, strict, google or rep1994."`
	Local   bool     `help:"Judge in this process, not in the running heed."`
	Fresh   bool     `help:"Judge in this process and fetch each robots.txt now."`
	Batch   bool     `help:"Read JSON Lines from stdin, write JSON Lines to stdout."`
	Explain bool     `help:"Explain each step from the User-Agent to the verdict."`
	JSON    bool     `name:"json" help:"Print one JSON object per URL."`
	Quiet   bool     `short:"q" help:"Print nothing; only set the exit status."`
	Page    string   `placeholder:"FILE|URL" help:"With --purpose: read the head of this page as well."`
	URLs    []string `arg:"" optional:"" name:"url" help:"The URLs to judge."`
}

// Run judges the URLs.
func (c *CheckCmd) Run(a *console.App) error {
	if err := c.usage(); err != nil {
		return err
	}
	judge, err := c.judgeFunc(a)
	if err != nil {
		return err
	}
	if c.Batch {
		return c.batch(a, judge)
	}
	type result struct {
		*control.Judgement
		err error
	}
	worst, paint := 0, console.Colours(a.Environ, a.Stdout)
	work := func(address string) (r result) {
		r.Judgement, r.err = judge(context.Background(), *c.Agent, address)
		return r
	}
	err = console.InOrder(console.FetchWidth, slices.Values(c.URLs), work, func(r result, _ bool) error {
		if r.err != nil {
			a.Complain(r.err)
			worst = console.ExitUsage
			return nil
		}
		if !r.Allowed {
			worst = max(worst, console.ExitNo)
		}
		return c.print(a.Stdout, paint, r.Judgement)
	})
	if err == nil && worst != 0 {
		return console.Exit(worst)
	}
	return err
}

func (c *CheckCmd) usage() error {
	switch {
	case c.Local && c.Fresh, c.Robots != "" && (c.Local || c.Fresh):
		return errors.New("--robots, --local and --fresh are three different sources of rules\nLeave all but one out")
	case c.Profile != "" && config.CheckProfile(c.Profile) != nil:
		return fmt.Errorf("--profile: %w", config.CheckProfile(c.Profile))
	case c.Batch && len(c.URLs) > 0:
		return errors.New("--batch takes its URLs from stdin\nLeave out the URLs, or --batch")
	case c.Batch && c.Robots == "-":
		return errors.New("--batch and --robots - would both read stdin\nName a file")
	case c.Batch && c.Agent != nil:
		return errors.New("--batch takes the agent from each line\nLeave out --agent, or --batch")
	case c.Explain && (c.Batch || c.JSON):
		return errors.New("--explain is for people, --json and --batch are for programs\nLeave one of them out")
	case c.Page != "" && len(c.Purpose) == 0:
		return errors.New("--page is read for a purpose\nAdd --purpose, such as --purpose search")
	case len(c.Purpose) > 0 && c.Batch:
		return errors.New("--batch judges by robots.txt alone\nLeave out --purpose, or --batch")
	case c.Page != "" && len(c.URLs) > 1:
		return errors.New("--page is the page of one URL\nName one URL")
	case c.Page != "" && isURL(c.Page) && c.Robots != "":
		return errors.New("with --robots nothing is fetched\nGive --page a file, or leave out --robots")
	case c.Client != "" && (c.Batch || c.Robots != ""):
		return errors.New("--client names an entry of the settings, which --batch and --robots do without\nLeave one of them out")
	case c.Batch:
		return nil
	case len(c.URLs) == 0:
		return errors.New("there is no URL to check\nWrite one, such as: heed check --agent ExampleBot https://example.org/page")
	case c.Agent == nil && c.Client != "":
		c.Agent = new(string) // the entry declares the names, or the client sends none
	case c.Agent == nil:
		return errors.New("--agent is required: the answer depends on the client's name\nAdd --agent with a User-Agent string or a product token, such as --agent ExampleBot")
	}
	return nil
}

// print writes one answer for people or as JSON.
func (c *CheckCmd) print(w io.Writer, paint console.Painter, a *control.Judgement) error {
	if c.Quiet {
		return nil
	}
	if c.JSON {
		return console.NewJSON(w).Encode(a)
	}
	verdict := paint(console.Red, "refuse")
	if a.Allowed {
		verdict = paint(console.Green, "allow ")
	}
	text := fmt.Sprintf("%s %s  %s: %s\n", verdict, console.Printable(a.URL), a.Reason, why.Line(a))
	if c.Explain {
		text += why.Text(why.Judgement(a, paint), paint) + "\n"
	}
	if a.Signals != nil {
		text += why.Text(why.Use(a.Signals), paint)
	}
	_, err := io.WriteString(w, text)
	return err
}
