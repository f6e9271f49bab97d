// Package run is heed run: it joins or starts a heed, runs the command, watches for
// connections that bypass heed, and prints the summary.
package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"heed/internal/audit/counts"
	"heed/internal/audit/replay"
	"heed/internal/base/state"
	"heed/internal/config"
	"heed/internal/config/clientenv"
	"heed/internal/config/route"
	"heed/internal/control"
	"heed/internal/judge/acl"
	"heed/internal/judge/reason"
	"heed/internal/output/console"
	"heed/internal/sealed"
	"heed/rules"
)

// RunCmd is `heed run`: it runs one command with a separate proxy.
type RunCmd struct {
	config.FileFlags
	acl.Terms
	Profile  string   `placeholder:"NAME" help:"Use this profile: standard, strict, google or rep1994."`
	Upstream string   `placeholder:"env|URL" help:"Reach sites through a proxy: URL, file:PATH, env:NAME or env."`
	Agent    string   `placeholder:"NAME" help:"Judge the command as NAME and send NAME to sites; needs --contact."`
	Contact  string   `placeholder:"URL" help:"Send this URL or mail address with --agent."`
	Observe  bool     `help:"Refuse nothing; report what would be refused."`
	FailOn   []string `placeholder:"WHAT" enum:"would-refuse,bypass" help:"Exit with 3 on would-refuse (see --observe) or bypass. Repeatable."`
	Sign     string   `placeholder:"FILE" help:"Sign requests with the key in FILE; needs --sign-agent (heed help identity)."`
	SignAt   string   `name:"sign-agent" placeholder:"URL" help:"The URL at which sites find the key of --sign."`
	Service  []string `sep:"none" placeholder:"HOST" help:"Do not judge requests to HOST, a service that is not crawled. Repeatable."`
	Sealed   bool     `help:"Leave the command no network exit but heed (Linux; heed help sealed)."`
	NoEnv    bool     `help:"With --sealed: set no variables, for programs whose proxy support is broken."`

	AllowHostPort []uint16 `placeholder:"PORT" help:"With --sealed: reach PORT of this machine's loopback. Repeatable."`
	AllowSocket   []string `sep:"none" placeholder:"PATH" help:"With --sealed: permit the Unix socket PATH. Repeatable."`

	Quiet    bool   `short:"q" help:"Print no summary and no remarks."`
	JSON     bool   `name:"json" help:"Print the summary as JSON on stderr."`
	Log      string `placeholder:"FILE" help:"Append a JSON line per decision to FILE; - is stderr."`
	Audit    string `placeholder:"FILE" help:"Record this run in a new FILE, for heed audit."`
	Policies string `placeholder:"FILE" help:"Judge by the robots.txt files in the record FILE; fetch none."`
	Note     string `placeholder:"TEXT" help:"Store TEXT in the record as a note; needs --audit."`

	Command []string `arg:"" optional:"" passthrough:"" name:"cmd" help:"The command and its arguments."`
}

// run is the state of one `heed run`.
type run struct {
	app    *console.App
	cmd    *RunCmd
	path   string // of the command
	args   []string
	state  string
	cfg    *config.Config
	found  clientenv.Found
	log    *runLog // nil: no --log
	join   control.JoinRequest
	own    []string      // addresses that heed listens on, host:port each
	bypass *bypassReport // set when the command has ended; nil in a sealed run

	seals  *sealed.Run   // nil: the run is not sealed
	sealed *sealedReport // set when the command of a sealed run has ended
}

// Run runs the command and ends with its exit status.
func (c *RunCmd) Run(a *console.App) error {
	r, err := c.prepare(a)
	if err != nil {
		return err
	}
	if c.Sealed {
		if err := r.seal(); err != nil {
			return err
		}
		defer r.seals.Close()
	}
	m, err := JoinOrStart(context.Background(), r.state, r.cfg.File, &r.join)
	if err != nil {
		return err
	}
	defer m.Leave()
	if c.Sealed {
		r.seals.HandedOver()
	}
	environ, err := ClientEnviron(a, m, r.state, r.found)
	if err != nil {
		return err
	}
	remarks := r.remarks(m)
	log := io.Discard
	if r.log != nil {
		log = r.log
	}
	if r.cfg.File != "" && !c.Quiet && !c.JSON {
		fmt.Fprintln(a.Stderr, "heed: settings of", console.Quoted(r.cfg.File))
	}
	finish := ReadStream(m, log, a.Stderr, !c.Quiet && !c.JSON)
	r.own = append(m.Own, m.Listen)
	if err := r.checkHostPorts(); err != nil {
		return err
	}
	child := r.child
	if c.Sealed {
		child = r.sealedChild
	}
	status, err := child(environ)
	if err != nil {
		return err
	}
	summary := finish(r.bypass.ended())
	if r.log != nil {
		r.closeLog()
	}
	r.report(status, summary, remarks)
	return console.Exit(r.failOn(status, summary))
}

// ClientEnviron returns the environment of a command behind the heed that m joined. found
// holds the CAs that the command trusts as well.
func ClientEnviron(a *console.App, m *control.RunClient, stateDir string, found clientenv.Found) ([]string, error) {
	// The CA is that of the joined heed, whose settings may differ.
	authority, err := route.OpenCA(m.CA.CACert, m.CA.CAKey, stateDir, a.Now)
	if err != nil {
		return nil, err
	}
	files, err := clientenv.MakeClientFiles(stateDir, authority, found, a.Now())
	if err != nil {
		return nil, err
	}
	return clientenv.ClientEnviron(a.Environ, m.Listen, files), nil
}

// exitObserved is the status for a command that succeeded although --fail-on names what
// happened.
const exitObserved = 3

// The values of --fail-on.
const (
	failObserved = "would-refuse"
	failBypass   = "bypass"
)

// refusals returns the number of requests that the site or the operator refuses.
func refusals(c *reason.Counts) int64 {
	return c[reason.RefusedByRule] + c[reason.RefusedByStatement] + c[reason.RefusedByOperator]
}

// failOn returns the exit status of heed: with --fail-on, a command that succeeded fails
// when what the flag names happened, or when there is no summary.
func (r *run) failOn(status int, s *counts.Summary) int {
	switch {
	case status != 0 || len(r.cmd.FailOn) == 0:
		return status
	case s == nil:
		return console.ExitUsage
	}
	for _, what := range r.cmd.FailOn {
		why := r.bypassed(s)
		if what == failObserved {
			why = r.observed(s)
		}
		if why == "" {
			continue
		}
		if !r.cmd.Quiet && !r.cmd.JSON {
			fmt.Fprintf(r.app.Stderr, "heed: status %d, since %s (--fail-on %s)\n", exitObserved, why, what)
		}
		return exitObserved
	}
	return 0
}

// observed returns which requests would have been refused by the site or by the operator;
// empty: none. A site whose robots.txt cannot be read refuses nothing.
func (r *run) observed(s *counts.Summary) string {
	if n := refusals(&s.WouldBe); n > 0 {
		return console.Plural(uint64(n), "request") + " would be refused"
	}
	if n := refusals(&s.Classes); n > 0 && !r.cmd.Quiet && !r.cmd.JSON {
		fmt.Fprintf(r.app.Stderr, "heed: --fail-on would-refuse counts only requests in observe mode, and %s refused: add --observe\n", requestsWere(uint64(n)))
	}
	return ""
}

// bypassed returns why requests may have bypassed heed; empty: there is no sign of it. A
// sealed run has no other way.
func (r *run) bypassed(s *counts.Summary) string {
	b := r.bypass
	switch {
	case b == nil:
		return ""
	case !b.Watched:
		return "this system does not list the connections of the run's processes"
	case b.Connections > 0:
		return "at least " + console.Plural(b.Connections, "connection") + " bypassed heed"
	case len(b.Ignoring) > 0:
		return b.Ignoring[0].words() + " ran, which ignores the proxy variables"
	case s.Requests == 0:
		return "no request came through"
	}
	return ""
}

// closeLog waits until the log is written and closes it, and reports lines that were lost.
// An interrupt ends the wait.
func (r *run) closeLog() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	err := r.log.wait(signals, func() {
		if !r.cmd.Quiet {
			fmt.Fprintln(r.app.Stderr, "heed: waiting for the reader of the log; Ctrl-C discards the rest")
		}
	})
	if err = errors.Join(err, r.log.closeFile()); err != nil {
		fmt.Fprintf(r.app.Stderr, "heed: the log is not complete: %v\n", err)
	}
}

// prepare checks the flags, the settings and the environment before anything is started.
func (c *RunCmd) prepare(a *console.App) (*run, error) {
	r := &run{app: a, cmd: c, args: c.Command}
	if len(r.args) > 0 && r.args[0] == "--" {
		r.args = r.args[1:]
	}
	if len(r.args) == 0 {
		return nil, errors.New("there is no command to run\nWrite it behind two dashes: heed run -- curl https://example.org/")
	}
	var err error
	if r.join.Flags, err = c.flags(); err != nil {
		return nil, err
	}
	if err := c.checkSealed(); err != nil {
		return nil, err
	}
	if r.join.Sign, err = c.sign(a.Now()); err != nil {
		return nil, err
	}
	if err := r.audit(); err != nil {
		return nil, err
	}
	if r.cfg, err = c.Load(a); err != nil {
		return nil, err
	}
	if r.path, err = exec.LookPath(r.args[0]); err != nil {
		return nil, cannotRun(a, r.args[0], err)
	}
	if r.state, err = state.Dir(); err != nil {
		return nil, err
	}
	r.found = clientenv.Inspect(a.Environ, r.state)
	if r.join.Route, err = c.routeSpec(a, r.cfg, r.found); err != nil {
		return nil, err
	}
	r.join.Version, r.join.Config, r.join.Asked = console.Version(), r.cfg.JoinHash(), r.cfg.File != "" || c.NoConfig
	if c.Log != "" {
		r.join.Log = true
		r.log, err = openRunLog(c.Log, a.Stderr)
	}
	return r, err
}

// audit adds the record of --audit to the join request.
func (r *run) audit() error {
	if r.cmd.Audit == "" {
		if r.cmd.Note != "" {
			return errors.New("--note needs --audit FILE: the note is stored in the record of the run")
		}
		return nil
	}
	file, err := filepath.Abs(r.cmd.Audit)
	if err != nil {
		return fmt.Errorf("--audit: %w", err)
	}
	r.join.Audit = &control.RunAudit{File: file, Command: r.args, Note: r.cmd.Note}
	return r.join.Audit.Check()
}

// routeSpec returns the route to sites that the environment and the flags select.
func (c *RunCmd) routeSpec(a *console.App, cfg *config.Config, found clientenv.Found) (control.RouteSpec, error) {
	w := control.RouteSpec{Roots: string(found.Certs()), Profile: c.Profile} // unreadable certificates are reported by remarks
	if c.Profile != "" {
		if err := config.CheckProfile(c.Profile); err != nil {
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
		if w.Proxy = route.ProxyOfEnviron(a.Environ); w.Proxy == nil {
			return w, route.ErrNoEnvProxy
		}
	case c.Upstream != "":
		all, err := config.UpstreamFlag(c.Upstream)
		if err == nil {
			all, err = config.ResolveUpstream(all, a.Environ)
		}
		if err != nil {
			return w, fmt.Errorf("--upstream: %w", err)
		}
		w.Proxy = &control.UpstreamProxy{All: all}
	case cfg.Upstream.Proxy == "env":
		w.Proxy = route.ProxyOfEnviron(a.Environ)
	}
	return w, nil
}

// remarks returns the remarks on the environment and the settings, and prints them unless
// --quiet or --json is set.
func (r *run) remarks(m *control.RunClient) []string {
	found := clientenv.Inspect(r.app.Environ, r.state, m.Own...)
	if r.join.Route.Proxy != nil {
		found.Proxies = nil // used, or replaced by --upstream
	}
	remarks := found.Remarks()
	remarks = append(remarks, m.Unjudged...)
	if r.cmd.Policies != "" {
		remarks = append(remarks, "judged by the robots.txt files in "+console.Quoted(r.cmd.Policies)+" alone; requests to sites that it has none of are refused")
	}
	if days := m.CADays; days <= console.CAWarningDays {
		remarks = append(remarks, "heed's CA certificate"+console.DaysLeft(days))
	}
	if !r.cmd.Quiet && !r.cmd.JSON {
		r.app.Remark(remarks...)
	}
	return remarks
}

// recordedPolicies returns the absolute path of a record, or an error unless it contains
// policies.
func recordedPolicies(path string) (string, error) {
	p, err := replay.OpenPolicies(path, rules.Standard)
	if err != nil {
		return "", err
	}
	if p.Len() == 0 {
		return "", fmt.Errorf("the record %s contains no robots.txt\nName the record of a run that fetched some", path)
	}
	return filepath.Abs(path)
}
