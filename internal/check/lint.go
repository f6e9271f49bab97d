package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"heed/cache"
	"heed/internal/config"
	"heed/internal/config/route"
	"heed/internal/judge/acl"
	"heed/internal/judge/signal"
	"heed/internal/output/console"
	"heed/proxy/usage"
	"heed/rules"
	"heed/rules/lint"
)

// LintCmd is `heed lint`: reports faults of a robots.txt.
type LintCmd struct {
	config.FileFlags
	acl.Terms
	Site    string   `placeholder:"URL" help:"Read FILE as the robots.txt of this site."`
	Profile string   `placeholder:"NAME" help:"Use this profile: standard (the default), strict, google or rep1994."`
	JSON    bool     `name:"json" help:"Print one JSON object per finding."`
	Quiet   bool     `short:"q" help:"Print nothing; only set the exit status."`
	Files   []string `arg:"" optional:"" name:"file|url" help:"Files, - for stdin, or sites whose robots.txt and licences are fetched."`
}

// finding is one line of the output.
type finding struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Kind    string `json:"kind"`
	Text    string `json:"text"`
	Means   string `json:"means"`
	Instead string `json:"instead"`
	Serious bool   `json:"serious"`
}

// Run lints the files.
func (c *LintCmd) Run(a *console.App) error {
	if len(c.Files) == 0 {
		return errors.New("there is no file to look at\nName one, or a site: heed lint robots.txt, heed lint https://example.org/")
	}
	if c.Profile != "" && config.CheckProfile(c.Profile) != nil {
		return fmt.Errorf("--profile: %w", config.CheckProfile(c.Profile))
	}
	site := rules.Origin{}
	if c.Site != "" {
		var err error
		if site, _, err = rules.ParseURL(c.Site); err != nil {
			return fmt.Errorf("--site: %w", err)
		}
	}
	obeyed, err := c.obeyed(a)
	if err != nil {
		return err
	}
	worst := 0
	for _, name := range c.Files {
		status, err := c.lint(a, name, site, obeyed)
		if err != nil {
			a.Complain(err)
			status = console.ExitUsage
		}
		worst = max(worst, status)
	}
	if worst != 0 {
		return console.Exit(worst)
	}
	return nil
}

// obeyed returns the names of purposes that the flags request, with those that the settings have
// for --purpose; nil without such flags.
func (c *LintCmd) obeyed(a *console.App) ([]string, error) {
	flags, err := c.Flags()
	if err != nil || len(flags.Purpose) == 0 {
		return flags.AlsoObey, err
	}
	cfg, err := c.Load(a)
	if err != nil {
		return nil, err
	}
	set := (&acl.Rules{AlsoObey: cfg.Signals.AlsoObey}).ForRun(flags)
	return set.For(nil, rules.Origin{}, time.Now()).Obeyed.List(), nil
}

// obeyedFindings returns what each name of a purpose comes to in a file.
func obeyedFindings(file string, p *rules.Policy, names []string) (all []finding) {
	for _, name := range names {
		f := finding{File: file, Kind: "obeyed-name", Text: name, Means: "No group names it: for clients that also obey it, nothing more is forbidden. The group for * is not applied a second time.",
			Instead: "Nothing, unless the site means it: a group User-agent: " + name}
		if groups := p.Explain(rules.PolicyToken(name), rules.NewTarget("/")).Governing; len(groups) > 0 {
			f.Line, f.Column = groups[0].Lines[0], 1
			f.Means = fmt.Sprintf("This group also applies to clients that obey it besides their own names (rules: %d).", groups[0].Rules)
			f.Instead = "Nothing; what it forbids: heed check --also-obey " + name + " --agent NAME URL"
		}
		all = append(all, f)
	}
	return all
}

// lint prints the findings of one file and returns the exit status.
func (c *LintCmd) lint(a *console.App, name string, site rules.Origin, obeyed []string) (status int, err error) {
	name, found, err := c.findings(a, name, site, obeyed)
	if err != nil {
		return 0, err
	}
	paint := console.Colours(a.Environ, a.Stdout)
	for _, f := range found {
		if f.Serious {
			status = console.ExitNo
		}
		if err := c.print(a.Stdout, paint, f); err != nil {
			return 0, err
		}
	}
	if len(found) == 0 && !c.Quiet {
		fmt.Fprintf(a.Stderr, "heed: %s: nothing odd\n", console.Printable(name))
	}
	return status, nil
}

// findings returns the findings about a file, or about the robots.txt of a site and the
// licences that it names, with the name of what was read.
func (c *LintCmd) findings(a *console.App, name string, site rules.Origin, obeyed []string) (read string, found []finding, err error) {
	profile, _ := rules.ParseProfile(c.Profile) // it was checked
	if isURL(name) {
		text, o, licences, err := c.fetch(a, name)
		if err != nil {
			return "", nil, err
		}
		all := findings(o.RobotsURL(), profile, o, text, obeyed)
		for _, address := range slices.Sorted(maps.Keys(licences)) {
			all = append(all, licenceFindings(address, licences[address])...)
		}
		return o.RobotsURL(), all, nil
	}
	text, err := readRobots(a, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil, fmt.Errorf("%w\nTo look at a site's, write its URL, such as https://example.org/", err)
	case err != nil:
		return "", nil, err
	}
	if l, ok := signal.ReadLicence(text); ok {
		return name, licenceFindings(name, l), nil
	}
	return name, findings(name, profile, site, text, obeyed), nil
}

// licenceFindings returns the findings about a licence.
func licenceFindings(name string, l signal.Licence) (all []finding) {
	for _, f := range signal.LintLicence(l) {
		all = append(all, finding{name, f.Line, 1, string(f.Kind), f.Text, f.Means, f.Instead, f.Serious})
	}
	return all
}

// findings returns the findings about the rules and about the usage signals of a file, in
// the order of its lines.
func findings(name string, profile rules.Profile, site rules.Origin, text string, obeyed []string) []finding {
	var all []finding
	for _, f := range lint.Lint(profile, site, []byte(text)) {
		all = append(all, finding{name, f.Line, f.Column, string(f.Kind), f.Text, f.Kind.Means(), f.Kind.Instead(), f.Kind.Severity() > lint.Note})
	}
	policy := rules.NewAs(profile, rules.Source{Origin: site, State: rules.Available}, []byte(text))
	for _, f := range signal.Lint(policy) {
		all = append(all, finding{name, f.Line, 1, string(f.Kind), f.Text, f.Means, f.Instead, f.Serious})
	}
	all = append(all, obeyedFindings(name, policy, obeyed)...)
	slices.SortStableFunc(all, func(a, b finding) int { return cmp.Compare(a.Line, b.Line) })
	return all
}

func isURL(name string) bool {
	return strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://")
}

// fetch fetches the robots.txt of a site, and the licences that it names, as the proxy does,
// without using or changing stored copies.
func (c *LintCmd) fetch(a *console.App, address string) (text string, o rules.Origin, licences map[string]signal.Licence, err error) {
	if o, _, err = rules.ParseURL(address); err != nil {
		return "", o, nil, err
	}
	cfg, err := c.Load(a)
	if err != nil {
		return "", o, nil, err
	}
	out, err := route.Open(cfg, a.Environ, route.Options{})
	if err != nil {
		return "", o, nil, err
	}
	p, robots, _ := policiesOf(a, out)(context.Background(), o, "")
	switch s := p.Source(); {
	case s.Snapshot != nil && s.Snapshot.Zlib != nil:
		body, err := s.Snapshot.Body()
		q := usage.Request{
			Settings: &usage.Settings{Documents: out.Documents}, Origin: o, Target: rules.NewTarget("/robots.txt"), Policy: p,
			Agents: []*rules.Agent{rules.Identify(cache.DefaultUserAgent(cfg.Contact))},
		}
		return string(body), o, q.Licences(context.Background(), signal.LicencesIn(p)), err
	case s.Status >= 400:
		return "", o, nil, fmt.Errorf("there is no robots.txt to look at: %s is answered with status %d\nWhat that means for a page: heed check --explain --agent NAME URL", robots, s.Status)
	default:
		return "", o, nil, fmt.Errorf("the robots.txt cannot be fetched: %w", s.Err)
	}
}

// print writes one finding for people or as JSON.
func (c *LintCmd) print(w io.Writer, paint console.Painter, f finding) error {
	if c.Quiet {
		return nil
	}
	if c.JSON {
		return console.NewJSON(w).Encode(f)
	}
	place := console.Printable(f.File)
	if f.Line > 0 {
		place = fmt.Sprintf("%s:%d:%d", place, f.Line, f.Column)
	}
	colour := console.Yellow
	if f.Serious {
		colour = console.Red
	}
	text := ""
	if f.Text != "" {
		text = "  " + console.Quoted(f.Text)
	}
	_, err := fmt.Fprintf(w, "%s %s%s\n    %s\n    %s\n", paint(console.Bold, place+":"), paint(colour, f.Kind), text, f.Means, f.Instead)
	return err
}
