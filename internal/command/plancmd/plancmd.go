// Package plancmd holds the command heed plan: what a crawl will get, and how long it takes.
package plancmd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"heed/internal/analysis/plan"
	"heed/internal/check"
	"heed/internal/config"
	"heed/internal/judge/acl"
	"heed/internal/output/console"
)

// PlanCmd is `heed plan`.
type PlanCmd struct {
	config.FileFlags
	acl.Terms
	Agent        []string      `short:"a" sep:"none" placeholder:"UA" help:"Plan for this User-Agent or product token; several make columns."`
	Client       string        `placeholder:"NAME" help:"Judge as the [[client]] NAME, whichever the User-Agent matches."`
	Profile      string        `placeholder:"NAME" help:"Use this profile: standard, strict, google or rep1994."`
	Local        bool          `help:"Judge in this process, not in the running heed."`
	Fresh        bool          `help:"Judge in this process and fetch each robots.txt now."`
	Sitemap      []string      `sep:"none" placeholder:"URL" help:"Read the pages of a sitemap or of an index of sitemaps."`
	Sitemaps     bool          `help:"Read the sitemaps that the robots.txt of each site names."`
	SitemapTime  time.Duration `default:"10m" placeholder:"DURATION" help:"Stop reading the sitemaps of a site after this time."`
	FromLog      []string      `name:"from-log" sep:"none" placeholder:"FILE" help:"Read the pages of an access log or a record."`
	Site         string        `placeholder:"URL" help:"Name the site of logs that contain no host."`
	JSONFields   []string      `name:"json-fields" placeholder:"FIELD=NAME" help:"Name members of JSON logs, or columns of CSV, that are not known."`
	Write        string        `placeholder:"FILE" help:"Write the URLs that are allowed to a new file."`
	WriteRefused string        `placeholder:"FILE" help:"Write the URLs that are refused to a new file."`
	JSON         bool          `xor:"form" name:"json" help:"Print one JSON object per site and agent, then the total."`
	CSV          bool          `xor:"form" name:"csv" help:"Print a table with a row per site and agent."`
	Quiet        bool          `xor:"form" short:"q" help:"Print nothing; only write files and set the exit status."`
	Files        []string      `arg:"" optional:"" name:"file" help:"Lists of URLs, one a line or JSON lines; - is standard input."`
}

// Run reads the lists, judges and prints.
func (c *PlanCmd) Run(a *console.App) error {
	if err := c.usage(); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	defer context.AfterFunc(ctx, stop)() // a second interrupt ends the process
	judge := check.CheckCmd{FileFlags: c.FileFlags, Client: c.Client, Terms: c.Terms, Profile: c.Profile, Local: c.Local, Fresh: c.Fresh}
	sites, err := judge.OpenSites(a, len(c.Sitemap) > 0 || c.Sitemaps)
	if err != nil {
		return err
	}
	in, err := c.open(a, sites)
	if err != nil {
		return err
	}
	files, err := c.files()
	if err != nil {
		return err
	}
	out := c.output(a)
	in.plan = plan.New(ctx, plan.Options{
		Agents: c.Agent, Open: func() plan.Judge { return sites.Site() }, Done: out.site, Page: files.page,
	})
	out.beside, out.end = a.Live(func() string { return words(in.plan.Progress(), in.waits.oldest(time.Now())) })
	err = c.make(ctx, in, out)
	return errors.Join(err, files.close(in.plan.Progress().URLs == 0))
}

// make makes the plan: it reads in, judges, and prints to out.
func (c *PlanCmd) make(ctx context.Context, in *inputs, out *output) error {
	out.head()
	read := make(chan error, 1)
	go func() { read <- in.read(ctx) }()
	var readErr error
	select {
	case readErr = <-read:
	case <-ctx.Done(): // standard input may wait without end
	}
	totals, left, err := in.plan.Finish()
	out.end()
	interrupted := ctx.Err() != nil
	sum := &summary{Totals: totals, Left: left, Progress: in.plan.Progress(), Interrupted: interrupted, Problems: in.problems.List()}
	if err == nil {
		err = readErr
	}
	if err != nil && sum.Progress.Judged == 0 {
		return err
	}
	if sum.Progress.URLs == 0 && !interrupted {
		return c.nothing(sum.Problems)
	}
	if err := errors.Join(out.total(sum), err); err != nil {
		return err
	}
	return c.exit(sum, in)
}

// exit returns the exit status.
func (c *PlanCmd) exit(s *summary, in *inputs) error {
	switch {
	case s.Interrupted:
		return console.Exit(130)
	case in.failed.Load(), slices.ContainsFunc(s.Totals, func(t plan.Total) bool { return t.Refused > 0 }):
		return console.Exit(console.ExitNo)
	}
	return nil
}

// nothing is the error of inputs that name no page.
func (c *PlanCmd) nothing(problems []plan.Problem) error {
	what, advice := "the lists name", "Write one URL a line, such as https://example.org/page, or JSON lines with a member url"
	switch {
	case len(c.FromLog) > 0:
		what, advice = "the logs name", "Name an access log or a record of heed (heed help accesslogs); a list of URLs needs no --from-log"
	case len(c.Files) == 0 && len(c.Sitemap) > 0:
		what, advice = "the sitemaps name", "Name the URL of a sitemap or of an index of sitemaps: robots.txt of the site may have it (heed check --explain)"
	case len(c.Files) == 0 && len(problems) == 0:
		advice = "Standard input was empty. Name a file with one URL a line: heed plan --agent ExampleBot urls.txt"
	}
	if len(problems) == 0 {
		return fmt.Errorf("%s no page\n%s", what, advice)
	}
	p := problems[0]
	return fmt.Errorf("%s no page: %s: %s\n%s", what, console.Quoted(strings.Join(p.Places, ", ")), console.Quoted(p.String()), advice)
}

func (c *PlanCmd) usage() error {
	switch {
	case len(c.Agent) == 0 || slices.Contains(c.Agent, ""):
		return errors.New("--agent is required: the answer depends on the client's name\nAdd --agent with a User-Agent string or a product token, such as --agent ExampleBot")
	case c.Local && c.Fresh:
		return errors.New("--local and --fresh are two different sources of rules\nLeave one of them out")
	case c.Profile != "" && config.CheckProfile(c.Profile) != nil:
		return fmt.Errorf("--profile: %w", config.CheckProfile(c.Profile))
	case (c.Write != "" || c.WriteRefused != "") && len(c.Agent) > 1:
		return errors.New("--write is for one agent: several may fetch different pages\nName one --agent")
	case c.Write != "" && c.Write == c.WriteRefused:
		return errors.New("--write and --write-refused name the same file\nName two files")
	case c.SitemapTime <= 0:
		return errors.New("--sitemap-time must be more than 0\nWrite a duration such as 10m or 2h")
	case c.Site != "" && len(c.FromLog) == 0:
		return errors.New("--site names the site of a log\nAdd --from-log, or write whole URLs into the list")
	}
	_, err := c.Flags()
	return err
}

// pageFiles are the files of --write and --write-refused, by whether their URLs are allowed.
type pageFiles map[bool]*pageFile

type pageFile struct {
	*bufio.Writer
	file *os.File
}

// files creates the files that flags name.
func (c *PlanCmd) files() (pageFiles, error) {
	f := pageFiles{}
	for _, named := range []struct {
		flag, path string
		allowed    bool
	}{{"--write", c.Write, true}, {"--write-refused", c.WriteRefused, false}} {
		if named.path == "" {
			continue
		}
		file, err := newFile(named.flag, named.path)
		if err != nil {
			return nil, errors.Join(err, f.close(true))
		}
		f[named.allowed] = &pageFile{bufio.NewWriter(file), file}
	}
	return f, nil
}

func newFile(flag, path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%s: %s exists already\nName another file, or move that one away", flag, console.Printable(path))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: the file cannot be written: %w\nName a file in a directory that exists and that you may write to", flag, err)
	}
	return file, nil
}

// page writes a URL to the file that it belongs to, if that is wanted.
func (f pageFiles) page(url string, allowed bool) (err error) {
	if to := f[allowed]; to != nil {
		_, err = to.WriteString(url + "\n")
	}
	return err
}

// close closes the files. Those of a plan that came to nothing are removed, so that the
// corrected command can write them.
func (f pageFiles) close(remove bool) (err error) {
	for _, p := range f {
		err = errors.Join(err, p.Flush(), p.file.Close())
		if remove {
			err = errors.Join(err, os.Remove(p.file.Name()))
		}
	}
	return err
}
