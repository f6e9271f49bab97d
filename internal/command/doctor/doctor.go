// Package doctor is heed doctor: it prints which runtimes of this machine ignore proxies,
// whether runs can be sealed here, and tries a command behind heed.
package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"

	"heed/internal/config"
	"heed/internal/config/clientenv"
	"heed/internal/output/console"
	"heed/internal/sealed"
)

// DoctorCmd is `heed doctor`: prints the runtimes of this machine, or tries a command.
type DoctorCmd struct {
	JSON    bool     `name:"json" help:"Print one JSON object instead of a table."`
	Command []string `arg:"" optional:"" passthrough:"" name:"cmd" help:"Try this command; {} is replaced by a URL (default: at its end)."`
}

// installed is a runtime of this machine.
type installed struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	Ignores bool   `json:"ignores_proxies"`   // it ignores the proxy variables
	Setting string `json:"setting,omitempty"` // what makes one use heed that ignores them
}

// diagnosis is the result of trying a command.
type diagnosis struct {
	Name       string `json:"name"`
	ProxyHTTP  bool   `json:"proxy_http"`  // http requests came through heed
	ProxyHTTPS bool   `json:"proxy_https"` // https requests, or tunnels for them, did
	Trusted    bool   `json:"trusted"`     // it accepted heed's certificate
	Refusal    bool   `json:"refusal"`     // it took a refusal for an error, and the site was not asked
	Missing    string `json:"missing,omitempty"`
	LastLine   string `json:"said,omitempty"` // of its output; empty when nothing is missing
}

func (d *diagnosis) well() bool {
	return d.ProxyHTTP && d.ProxyHTTPS && d.Trusted && d.Refusal
}

// Run prints the runtimes, or tries the command and prints the result.
func (c *DoctorCmd) Run(a *console.App) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	args := c.Command
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) > 0 {
		return c.try(ctx, a, args)
	}
	found := runtimes(ctx, a)
	if ctx.Err() != nil {
		return console.Exit(128 + int(syscall.SIGINT))
	}
	seal, signs := sealWords(sealed.Probe()), signWords(a)
	if c.JSON {
		return console.NewJSON(a.Stdout).Encode(map[string]any{"runtimes": found, "sealed": seal, "signatures": signs})
	}
	table := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "runtime\tproxy variables\tneeds")
	for _, r := range found {
		word, needs := "read", "-"
		if r.Ignores {
			word, needs = "ignored", "heed run --sealed, or: "+r.Setting
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", strings.TrimSpace(console.Printable(r.Name+" "+r.Version)), word, needs)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.Stdout, "%sTo try a command: heed doctor -- CMD {}\nheed run --sealed: %s\nsignatures: %s\n", placeholders(func(text string) bool {
		return slices.ContainsFunc(found, func(r installed) bool { return strings.Contains(r.Setting, text) })
	}), seal, signs)
	return err
}

// try tries a command.
func (c *DoctorCmd) try(ctx context.Context, a *console.App, args []string) error {
	a.Progress("trying " + args[0] + " with a site on this machine")
	d, err := examine(ctx, a, args)
	switch {
	case ctx.Err() != nil:
		return console.Exit(128 + int(syscall.SIGINT))
	case err != nil:
		return err
	case c.JSON:
		err = console.NewJSON(a.Stdout).Encode(map[string]any{"well": d.well(), "tried": d})
	default:
		err = d.print(a)
	}
	if err == nil && !d.well() {
		err = console.Exit(console.ExitNo)
	}
	return err
}

// runtimes returns the programs of clientenv that are in the PATH.
func runtimes(ctx context.Context, a *console.App) []installed {
	found := []installed{}
	for _, p := range clientenv.Programs() {
		for _, name := range p.Names {
			path, err := exec.LookPath(cmp.Or(map[string]string{"python": "python3"}[name], name))
			if err != nil || p.Wraps {
				continue
			}
			r := installed{Name: name, Version: clientenv.VersionOf(ctx, path, a.Environ)}
			if r.Ignores = p.Ignores(r.Version); r.Ignores {
				r.Setting = p.Proxy
			}
			found = append(found, r)
			break // one of each kind
		}
	}
	return found
}

// sealWords returns whether this machine can seal a run, given the error of the trial.
func sealWords(err error) string {
	if err == nil {
		return "works on this machine, and holds every program"
	}
	return strings.ReplaceAll(err.Error(), "\n", ". ")
}

// signWords returns whether requests are signed with the settings that apply here.
func signWords(a *console.App) string {
	cfg, err := (&config.FileFlags{}).Load(a)
	if err != nil {
		return "the settings cannot be read: heed config check"
	}
	all, err := cfg.Signers()
	switch {
	case err != nil:
		return strings.ReplaceAll(err.Error(), "\n", ". ")
	case len(all) == 0:
		return "no client is signed (heed help identity)"
	}
	var words []string
	for _, s := range all {
		end := ""
		if !s.By.Key().Valid(a.Now()) {
			end = ", whose key is not valid now"
		}
		words = append(words, fmt.Sprintf("%s as %s%s", s.Of, console.Quoted(s.By.Agent()), end))
	}
	return strings.Join(words, "; ") + ". A signature is a name, not a pass (heed help identity)"
}

// print prints the table of one command, and below it the last line of its output when
// something is missing.
func (d *diagnosis) print(a *console.App) error {
	table := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "command\tproxy used\thttps trusted\trefusal seen\tmissing")
	fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", console.Printable(d.Name), d.proxyWord(), yes(d.Trusted, d.ProxyHTTPS), yes(d.Refusal, d.ProxyHTTP), cmp.Or(d.Missing, "-"))
	err := table.Flush()
	if d.LastLine != "" {
		fmt.Fprintf(a.Stdout, "%s printed: %s\n", console.Printable(d.Name), d.LastLine)
	}
	fmt.Fprint(a.Stdout, placeholders(func(text string) bool { return strings.Contains(d.Missing, text) }))
	return err
}

// placeholders explains the placeholders of clientenv, if has finds one of them.
func placeholders(has func(text string) bool) string {
	if !has(clientenv.ProxyPlaceholder) && !has(clientenv.BundlePlaceholder) {
		return ""
	}
	return clientenv.ProxyPlaceholder + " is where heed listens, such as 127.0.0.1:3128; " + clientenv.BundlePlaceholder +
		" a file with what `heed ca bundle` prints.\n`heed run` and `heed env` set the variables; one that is missing did not reach the\ncommand. Options are the command's own.\n"
}

func (d *diagnosis) proxyWord() string {
	switch {
	case d.ProxyHTTP && d.ProxyHTTPS:
		return "yes"
	case d.ProxyHTTP:
		return "http only"
	case d.ProxyHTTPS:
		return "https only"
	}
	return "no"
}

// yes returns the text of a column: a dash when the trial was not possible.
func yes(is, tried bool) string {
	switch {
	case is:
		return "yes"
	case tried:
		return "no"
	}
	return "-"
}

// missing returns the setting that a command lacks; empty when d is ok.
func (d *diagnosis) missing(args []string) string {
	p := clientenv.OtherPrograms()
	p.Proxy = "http_proxy=http://HEED https_proxy=http://HEED; heed run --sealed holds a program that ignores them"
	for _, word := range args {
		if known, is := clientenv.ProgramOf(word); is && !known.Wraps {
			p = known
			break
		}
	}
	switch {
	case d.well():
		return ""
	case !d.ProxyHTTP || !d.ProxyHTTPS:
		return p.Proxy
	case !d.Trusted:
		return cmp.Or(p.Trust, "SSL_CERT_FILE=BUNDLE")
	}
	return "a check of the answer's status: 403 is taken for success"
}

// errEnded is the error of a heed that ended during a trial.
var errEnded = errors.New("the heed that was to judge ended before the command had been tried\nTry again")
