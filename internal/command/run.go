package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"heed/internal/audit"
	"heed/internal/terms"
)

// RunCmd is `heed run`: one command under a proxy of its own.
type RunCmd struct {
	Config   string   `short:"c" env:"HEED_CONFIG" placeholder:"FILE" help:"Read settings from FILE instead of ./proxy.toml."`
	Profile  string   `placeholder:"NAME" help:"Read robots.txt as standard, strict, google or rep1994 have it, instead of the configured one."`
	Upstream string   `placeholder:"env|URL" help:"Reach sites through another proxy: a URL, file:PATH or env:NAME where one stands, or env for the one named in the environment."`
	Agent    string   `placeholder:"NAME" help:"Declare the name the command goes by: it is judged under it and sends it. Needs --contact."`
	Contact  string   `placeholder:"URL" help:"URL or mail address that is sent with --agent."`
	Observe  bool     `help:"Refuse nothing: judge, and say what would be refused."`
	FailOn   string   `placeholder:"would-refuse" enum:",would-refuse" default:"" help:"End with status 3 when anything would be refused."`
	Service  []string `sep:"none" placeholder:"HOST" help:"The command calls HOST as a service and does not crawl it (as crawl = false does): it is not judged there. May be repeated."`
	Quiet    bool     `short:"q" help:"Print no summary and no remarks."`
	JSON     bool     `name:"json" help:"Print the summary as JSON, on stderr."`
	Log      string   `placeholder:"FILE" help:"Append a JSON line per decision to FILE; - for stderr."`
	Audit    string   `placeholder:"FILE" help:"Record this run in a new FILE of its own, for heed audit."`
	Policies string   `placeholder:"FILE" help:"Judge by the robots.txt files in the record of an earlier run, and ask no site for its own."`
	Note     string   `placeholder:"TEXT" help:"What the run is about, for the record. Needs --audit."`

	Command []string `arg:"" optional:"" passthrough:"" name:"cmd" help:"The command and its arguments."`
}

// Help is what `heed run --help` prints at the end.
func (RunCmd) Help() string {
	return `CMD gets a proxy of its own on a free port, and variables that lead its requests there and make it trust heed's CA. Signals and the exit status pass through; then a summary tells, on stderr, what was allowed, what was refused by which rule, and (on Linux) what went round heed, as far as a look at the command's connections every moment shows it. Runs at the same time share what they know of the sites: each site's robots.txt is fetched once for all.

  heed run -- curl https://example.org/
  heed run --agent NewsBot --contact https://example.org/newsbot -- python3 fetch.py
  heed run --audit crawl.db --note "first crawl" -- ./crawl
  heed run --policies crawl.db --audit other.db -- ./other-crawl
  heed run --observe --fail-on would-refuse -- ./crawl
  heed run --service registry.example.org -- npm install

Exit status: that of CMD; 3 when CMD succeeded and --fail-on found something; 128 and the signal's number when a signal ended it; 126 or 127 when CMD cannot be run; 2 when heed cannot.`
}

// endPatience is how long a run waits for its summary when heed does not end
// the run's open exchanges by itself.
const endPatience = runDrain + 5*time.Second

// run is what is known of a run before its command starts.
type run struct {
	app   *App
	cmd   *RunCmd
	path  string // of the command
	args  []string
	state string
	cfg   *Config
	found Found
	log   *runLog // nil: not asked for
	join  join
	own   []string   // where heed listens, host:port each
	round *wentRound // once the command has ended
}

// Run runs the command and ends with its exit status.
func (c *RunCmd) Run(a *App) error {
	r, err := c.prepare(a)
	if err != nil {
		return err
	}
	m, err := joinOrStart(context.Background(), r.state, r.cfg.File, &r.join)
	if err != nil {
		return err
	}
	defer m.leave()
	// The joined heed's CA: its settings need not be ours.
	authority, err := openCA(&Config{HTTPS: m.CA}, r.state, a.Now)
	if err != nil {
		return err
	}
	files, err := MakeClientFiles(r.state, authority, r.found, a.Now())
	if err != nil {
		return err
	}
	remarks := r.remarks(m)
	reader := readStream(m, r.logWriter(), a.Stderr, !c.Quiet && !c.JSON)
	r.own = append(m.Own, m.Listen)
	status, err := r.child(ClientEnviron(a.Environ, m.Listen, files))
	if err != nil {
		return err
	}
	summary := reader.finish(m)
	if r.log != nil {
		if err := r.closeLog(); err != nil {
			fmt.Fprintf(a.Stderr, "heed: the log is not complete: %v\n", err)
		}
	}
	r.report(status, summary, remarks)
	return Exit(r.failOn(status, summary))
}

// exitObserved is the status of a command that succeeded although something it
// asked for would have been refused.
const exitObserved = 3

// failOn turns the status of a command that succeeded into heed's own where
// --fail-on asks for it. Without a summary nobody knows, which is no success.
func (r *run) failOn(status int, s *audit.Summary) int {
	switch {
	case status != 0 || r.cmd.FailOn == "":
		return status
	case s == nil:
		return exitUsage
	case s.WouldRefuse == 0:
		return 0
	}
	if !r.cmd.Quiet && !r.cmd.JSON {
		fmt.Fprintf(r.app.Stderr, "heed: status %d, since %s would be refused (--fail-on would-refuse)\n", exitObserved, plural(s.WouldRefuse, "request"))
	}
	return exitObserved
}

// closeLog waits until the log is written, as any program does that writes to a
// pipe: whoever reads it may take its time. An interrupt ends the wait, and what
// cannot be written at all is not waited for.
func (r *run) closeLog() error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	err := r.log.wait(signals, func() {
		if !r.cmd.Quiet {
			fmt.Fprintln(r.app.Stderr, "heed: waiting for whoever reads the log; Ctrl-C gives up what is not read")
		}
	})
	return errors.Join(err, r.log.Close())
}

// prepare finds all that can be wrong before anything is started.
func (c *RunCmd) prepare(a *App) (*run, error) {
	r := &run{app: a, cmd: c, args: c.Command}
	if len(r.args) > 0 && r.args[0] == "--" {
		r.args = r.args[1:]
	}
	if len(r.args) == 0 {
		return nil, errors.New("there is no command to run\nWrite it behind two dashes: heed run -- curl https://example.org/")
	}
	var err error
	if r.join.Agent, r.join.UserAgent, err = declared(c.Agent, c.Contact); err != nil {
		return nil, err
	}
	for _, host := range c.Service {
		if _, err := terms.ParseHostPattern(host); err != nil {
			return nil, fmt.Errorf("--service: %w", err)
		}
	}
	r.join.Observe, r.join.Services = c.Observe, c.Service
	if err := r.audit(); err != nil {
		return nil, err
	}
	if r.cfg, err = Load(c.Config, a.Defaults); err != nil {
		return nil, err
	}
	if r.path, err = findCommand(a, r.args[0]); err != nil {
		return nil, err
	}
	if r.state, err = StateDir(); err != nil {
		return nil, err
	}
	r.found = Inspect(a.Environ, r.state)
	if r.join.Way, err = c.way(a, r.cfg, r.found); err != nil {
		return nil, err
	}
	r.join.Version, r.join.Config, r.join.Asked = Version(), r.cfg.JoinHash(), r.cfg.File != ""
	if c.Log != "" {
		r.join.Log = true
		r.log, err = openRunLog(c.Log, a.Stderr)
	}
	return r, err
}

// audit asks for a record of this run alone where --audit does.
func (r *run) audit() error {
	if r.cmd.Audit == "" {
		if r.cmd.Note != "" {
			return errors.New("--note is kept in the record of the run; name a file for it with --audit")
		}
		return nil
	}
	file, err := filepath.Abs(r.cmd.Audit)
	if err != nil {
		return fmt.Errorf("--audit: %w", err)
	}
	r.join.Audit = &runAudit{File: file, Command: r.args, Note: r.cmd.Note}
	return r.join.Audit.check()
}

// way is how this run wants sites to be reached, as its environment and flags say.
func (c *RunCmd) way(a *App, cfg *Config, found Found) (way, error) {
	w := way{Roots: string(found.Certs()), Profile: c.Profile} // certificates that cannot be read are among the remarks
	if c.Profile != "" {
		if err := checkProfile(c.Profile); err != nil {
			return w, fmt.Errorf("--profile: %w", err)
		}
	}
	if c.Policies != "" {
		var err error
		if w.Policies, err = recordedPolicies(c.Policies); err != nil {
			return w, fmt.Errorf("--policies: %w", err)
		}
	}
	switch {
	case c.Upstream == "env":
		if w.Proxy = upstreamOfEnviron(a.Environ); w.Proxy == nil {
			return w, errNoEnvProxy
		}
	case c.Upstream != "":
		all, err := upstreamFlag(c.Upstream)
		if err == nil {
			all, err = revealedUpstream(all, a.Environ)
		}
		if err != nil {
			return w, fmt.Errorf("--upstream: %w", err)
		}
		w.Proxy = &upstreamProxy{All: all}
	case cfg.Upstream.Proxy == "env":
		w.Proxy = upstreamOfEnviron(a.Environ)
	}
	return w, nil
}

// remarks are what the user should know of the environment found.
func (r *run) remarks(m *membership) []string {
	found := Inspect(r.app.Environ, r.state, m.Own...)
	if r.join.Way.Proxy != nil {
		found.Proxies = nil // used, or left out for another one by the user
	}
	remarks := found.Remarks()
	remarks = append(remarks, m.Unjudged...)
	if r.cmd.Policies != "" {
		remarks = append(remarks, "judged by the robots.txt files in "+quoted(r.cmd.Policies)+" alone; requests to sites that it has none of are refused")
	}
	if days := m.CADays; days <= caRemarkDays {
		remarks = append(remarks, "heed's CA certificate"+daysLeft(days))
	}
	if !r.cmd.Quiet && !r.cmd.JSON {
		for _, text := range remarks {
			fmt.Fprintln(r.app.Stderr, "heed:", text)
		}
	}
	return remarks
}

// findCommand returns the path of the command, or ends with the status a shell
// gives: 127 when there is none, 126 when it is no program.
func findCommand(a *App, name string) (string, error) {
	path, err := exec.LookPath(name)
	switch {
	case err == nil:
		return path, nil
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		fmt.Fprintf(a.Stderr, "heed: %s: there is no such command\n", printable(name))
		return "", Exit(127)
	}
	var reason *exec.Error
	if errors.As(err, &reason) {
		err = reason.Err
	}
	fmt.Fprintf(a.Stderr, "heed: %s: the command cannot be run: %v\n", printable(name), err)
	return "", Exit(126)
}

// logWriter is the log as a writer; nil when it was not asked for.
func (r *run) logWriter() io.Writer {
	if r.log == nil {
		return nil
	}
	return r.log
}

// declared turns --agent and --contact into the product token that is judged
// and the User-Agent that is sent.
func declared(name, contact string) (token, userAgent string, err error) {
	switch {
	case name == "" && contact == "":
		return "", "", nil
	case name == "":
		return "", "", errors.New("--contact says how to reach whoever --agent names; name the agent too, such as --agent NewsBot")
	case contact == "":
		return "", "", errors.New("--agent needs --contact: a URL or mail address where a site's owner can ask about it")
	}
	if err := checkContact(contact); err != nil {
		return "", "", fmt.Errorf("--contact: %w", err)
	}
	token, version, versioned := strings.Cut(name, "/")
	if !versioned {
		version = "1.0"
	}
	if !isProductToken(token) || checkName(version) != nil || version == "" {
		return "", "", fmt.Errorf("--agent: %q is not a name that a robots.txt can use; write letters, digits, - and _, such as NewsBot or NewsBot/2.1", printable(name))
	}
	return token, token + "/" + version + " (+" + contact + ")", nil
}

// isProductToken reports whether s can be the name in a user-agent line
// (RFC 9309 §2.2.1, and digits, which real names have).
func isProductToken(s string) bool {
	letters := 0
	for _, r := range s {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z':
			letters++
		case r >= '0' && r <= '9', r == '-', r == '_':
		default:
			return false
		}
	}
	return letters > 0 && len(s) <= 64
}
