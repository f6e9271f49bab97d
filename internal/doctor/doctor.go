// Package doctor is heed doctor: it tries which runtimes of this machine work behind
// heed.
package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"

	"heed/internal/clientenv"
	"heed/internal/config"
	"heed/internal/console"
	"heed/internal/sealed"
)

// DoctorCmd is `heed doctor`: tries whether this machine's runtimes use heed.
type DoctorCmd struct {
	JSON    bool     `name:"json" help:"Print one JSON object instead of a table."`
	Command []string `arg:"" optional:"" passthrough:"" name:"cmd" help:"Try only this command; {} is replaced by a URL (default: at its end)."`
}

// diagnosis is the result of one runtime.
type diagnosis struct {
	Name       string `json:"name"`
	Version    string `json:"version,omitempty"`
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

// Run tries the runtimes and prints the results.
func (c *DoctorCmd) Run(a *console.App) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	candidates, untried, err := c.candidates(ctx)
	if err != nil {
		return err
	}
	a.Progress("trying " + names(candidates) + " with a site on this machine")
	found, err := examine(ctx, a, candidates)
	if ctx.Err() != nil {
		return console.Exit(128 + int(syscall.SIGINT))
	}
	if err != nil {
		return err
	}
	well := !slices.ContainsFunc(found, func(d diagnosis) bool { return !d.well() })
	seal, signs := sealWords(sealed.Probe()), signWords(a)
	if c.JSON {
		err = console.NewJSON(a.Stdout).Encode(map[string]any{"well": well, "runtimes": found, "not_tried": untried, "sealed": seal, "signatures": signs})
	} else if err = printDiagnoses(a, found); err == nil && len(untried) > 0 {
		_, err = fmt.Fprintf(a.Stdout, "not tried: %s\n", strings.Join(untried, "; "))
	}
	if err == nil && !c.JSON {
		_, err = fmt.Fprintln(a.Stdout, "heed run --sealed: "+seal+"\nsignatures: "+signs)
	}
	if err == nil && !well {
		err = console.Exit(console.ExitNo)
	}
	return err
}

// sealWords returns whether this machine can seal a run, given the error of the trial.
func sealWords(err error) string {
	if err == nil {
		return "works on this machine"
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

// candidates returns the runtimes to try, those found or the command given, and the
// reasons why others of this machine are not tried.
func (c *DoctorCmd) candidates(ctx context.Context) (found []candidate, untried []string, err error) {
	untried = []string{} // in JSON a list, also when it is empty
	args := c.Command
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) > 0 {
		return []candidate{commandCandidate(args)}, untried, nil
	}
	for _, r := range runtimes {
		switch is, without := r.found(ctx); {
		case is:
			found = append(found, candidate{runtimeKind: r, Version: r.versionOf(ctx)})
		case without != "":
			untried = append(untried, without)
		}
	}
	if len(found) == 0 {
		return nil, nil, errors.New("no runtime that heed doctor can try is in the PATH\nName a command to try: heed doctor -- CMD {}")
	}
	return found, untried, nil
}

func names(candidates []candidate) string {
	list := make([]string, len(candidates))
	for i, p := range candidates {
		list[i] = p.name
	}
	return strings.Join(list, ", ")
}

// printDiagnoses prints the table, and below it the last line of output of each
// runtime where something is missing.
func printDiagnoses(a *console.App, found []diagnosis) error {
	table := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "runtime\tproxy used\thttps trusted\trefusal seen\tmissing")
	explain := false
	for _, d := range found {
		missing := cmp.Or(d.Missing, "-")
		explain = explain || strings.Contains(missing, clientenv.ProxyPlaceholder) || strings.Contains(missing, clientenv.BundlePlaceholder)
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", strings.TrimSpace(console.Printable(d.Name+" "+d.Version)), d.proxyWord(), yes(d.Trusted, d.ProxyHTTPS), yes(d.Refusal, d.ProxyHTTP), missing)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, d := range found {
		if d.LastLine != "" {
			fmt.Fprintf(a.Stdout, "%s printed: %s\n", console.Printable(d.Name), d.LastLine)
		}
	}
	if explain {
		fmt.Fprintln(a.Stdout, clientenv.ProxyPlaceholder+" is where heed listens, such as 127.0.0.1:3128; "+clientenv.BundlePlaceholder+" a file with what `heed ca bundle` prints.\n`heed run` and `heed env` set the variables; one that is missing did not reach the\ncommand. Options are the command's own.")
	}
	return nil
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
