package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"time"

	"heed/cache"
	"heed/rules"
)

// LintCmd is `heed lint`: what is wrong with a robots.txt.
type LintCmd struct {
	Config  string   `short:"c" env:"HEED_CONFIG" placeholder:"FILE" help:"Read settings from FILE instead of ./proxy.toml."`
	Site    string   `placeholder:"URL" help:"The site that a FILE is for; tells its own URLs from others."`
	Profile string   `placeholder:"NAME" help:"Read it as standard (the default), strict, google or rep1994 have it."`
	JSON    bool     `name:"json" help:"Print one JSON object per finding."`
	Quiet   bool     `short:"q" help:"Print nothing; the exit status tells."`
	Files   []string `arg:"" optional:"" name:"file|url" help:"Files, - for stdin, or sites whose robots.txt is fetched."`
}

// Help tells the output and the exit status.
func (c *LintCmd) Help() string {
	return `Prints what is odd in a robots.txt: where, what it means to heed and to other
robots, and what to write instead. Exit status 0 when nothing is lost or
misleading, 1 when something is, 2 when a file cannot be had.

Examples:

    heed lint robots.txt
    heed lint https://example.org/`
}

// lintTimeout is how long fetching one robots.txt may take, as the proxy has it.
const lintTimeout = cache.DefaultTimeout

// finding is one line of the output.
type finding struct {
	File    string            `json:"file"`
	Line    int               `json:"line"`
	Column  int               `json:"column"`
	Kind    rules.FindingKind `json:"kind"`
	Text    string            `json:"text"`
	Means   string            `json:"means"`
	Instead string            `json:"instead"`
	Serious bool              `json:"serious"`
}

// Run lints the files.
func (c *LintCmd) Run(a *App) error {
	if len(c.Files) == 0 {
		return errors.New("there is no file to look at\nName one, or a site: heed lint robots.txt, heed lint https://example.org/")
	}
	if c.Profile != "" && checkProfile(c.Profile) != nil {
		return fmt.Errorf("--profile: %w", checkProfile(c.Profile))
	}
	site := rules.Origin{}
	if c.Site != "" {
		var err error
		if site, _, err = parseURL(c.Site); err != nil {
			return fmt.Errorf("--site: %w", err)
		}
	}
	worst := 0
	for _, name := range c.Files {
		status, err := c.lint(a, name, site)
		if err != nil {
			a.complain(err)
			status = exitUsage
		}
		worst = max(worst, status)
	}
	if worst != 0 {
		return Exit(worst)
	}
	return nil
}

// lint tells what is odd in one file and returns the exit status it stands for.
func (c *LintCmd) lint(a *App, name string, site rules.Origin) (status int, err error) {
	var text string
	if isURL(name) {
		text, site, err = c.fetch(a, name)
	} else {
		text, err = readRobots(a, name)
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w\nTo look at a site's, write its URL, such as https://example.org/", err)
		}
	}
	if err != nil {
		return 0, err
	}
	paint := colours(a.Environ, a.Stdout)
	profile, _ := rules.ParseProfile(c.Profile) // it was checked
	found := rules.Lint(profile, site, []byte(text))
	for _, f := range found {
		serious := f.Kind.Severity() > rules.Note
		if serious {
			status = exitNo
		}
		if err := c.print(a.Stdout, paint, finding{name, f.Line, f.Column, f.Kind, f.Text, f.Kind.Means(), f.Kind.Instead(), serious}); err != nil {
			return 0, err
		}
	}
	if len(found) == 0 && !c.Quiet {
		fmt.Fprintf(a.Stderr, "heed: %s: nothing odd\n", printable(name))
	}
	return status, nil
}

func isURL(name string) bool {
	return strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://")
}

// fetch gets the robots.txt of a site as the proxy would, but for what the
// proxy keeps.
func (c *LintCmd) fetch(a *App, address string) (text string, o rules.Origin, err error) {
	o, _, err = parseURL(address)
	if err != nil {
		return "", o, err
	}
	cfg, err := Load(c.Config, a.Defaults)
	if err != nil {
		return "", o, err
	}
	ways, err := newEgresses(cfg, a.Environ)
	if err != nil {
		return "", o, err
	}
	out, err := ways.take(way{})
	if err != nil {
		return "", o, err
	}
	slow := time.AfterFunc(time.Second, func() { a.progress("waiting for " + o.RobotsURL()) })
	defer slow.Stop()
	text, err = fetchText(&http.Client{Transport: out.transport, CheckRedirect: noDowngrade}, o, cache.DefaultUserAgent(cfg.Contact))
	return text, o, err
}

func fetchText(client *http.Client, o rules.Origin, userAgent string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), lintTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, o.RobotsURL(), nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("User-Agent", userAgent)
	resp, err := client.Do(req)
	if err != nil {
		return "", fmt.Errorf("the robots.txt cannot be had: %w", err)
	}
	defer resp.Body.Close()
	if !slices.Contains([]int{http.StatusOK, http.StatusNonAuthoritativeInfo, http.StatusNoContent}, resp.StatusCode) {
		return "", fmt.Errorf("there is no robots.txt to look at: %s is answered with status %d", o.RobotsURL(), resp.StatusCode)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, rules.MaxBytes+1))
	if err != nil {
		return "", fmt.Errorf("the robots.txt cannot be had: %w", err)
	}
	return string(data), nil
}

// noDowngrade follows redirects as the proxy does: ten of them, and none from
// https to http.
func noDowngrade(req *http.Request, via []*http.Request) error {
	if len(via) > 10 {
		return errors.New("more than 10 redirects")
	}
	if req.URL.Scheme == "http" && via[len(via)-1].URL.Scheme == "https" {
		return errors.New("a redirect from https to http is not followed")
	}
	return nil
}

// print writes one finding for people or as JSON.
func (c *LintCmd) print(w io.Writer, paint painter, f finding) error {
	if c.Quiet {
		return nil
	}
	if c.JSON {
		return newJSON(w).Encode(f)
	}
	place := printable(f.File)
	if f.Line > 0 {
		place = fmt.Sprintf("%s:%d:%d", place, f.Line, f.Column)
	}
	colour := yellow
	if f.Serious {
		colour = red
	}
	text := ""
	if f.Text != "" {
		text = "  " + quoted(f.Text)
	}
	_, err := fmt.Fprintf(w, "%s %s%s\n    %s\n    %s\n", paint(bold, place+":"), paint(colour, string(f.Kind)), text, f.Means, f.Instead)
	return err
}
