package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
)

// DoctorCmd is `heed doctor`: whether this machine's runtimes can be held.
type DoctorCmd struct {
	JSON    bool     `name:"json" help:"Print one JSON object instead of a table."`
	Command []string `arg:"" optional:"" passthrough:"" name:"cmd" help:"Try this command instead: it is run with an address to fetch in the place of {}, or at its end."`
}

// Help says what is tried.
func (DoctorCmd) Help() string {
	return `Tries every runtime it finds (curl, wget, Python, Node, Java, Go, git, Perl, Ruby, PHP) in the environment of heed run: each fetches a page that is allowed and one that is refused, over http and https, from a site that heed doctor serves on this machine for as long as it takes. Nothing leaves the machine and nothing is changed.

A line tells whether the requests came through heed, whether the runtime trusted heed's certificate, whether it saw the refusal as an error, and what is missing where it did not. With a command, that one is tried.

  heed doctor
  heed doctor -- node fetch.mjs {}

Exit status: 0 when all is well, 1 when something is missing, 2 when nothing could be tried.`
}

// diagnosis is what became of one runtime.
type diagnosis struct {
	Name       string `json:"name"`
	Version    string `json:"version,omitempty"`
	ProxyHTTP  bool   `json:"proxy_http"`  // http requests came through heed
	ProxyHTTPS bool   `json:"proxy_https"` // https requests, or tunnels for them, did
	Trusted    bool   `json:"trusted"`     // it accepted heed's certificate
	Refusal    bool   `json:"refusal"`     // it took a refusal for an error, and the site was not asked
	Missing    string `json:"missing,omitempty"`
	Said       string `json:"said,omitempty"` // its last words, where something is missing
}

func (d *diagnosis) well() bool {
	return d.ProxyHTTP && d.ProxyHTTPS && d.Trusted && d.Refusal
}

// Run tries the runtimes and prints what it found.
func (c *DoctorCmd) Run(a *App) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	patients, untried, err := c.patients(ctx)
	if err != nil {
		return err
	}
	a.progress("trying " + names(patients) + " with a site on this machine")
	found, err := examine(ctx, a, patients)
	if ctx.Err() != nil {
		return Exit(128 + int(syscall.SIGINT))
	}
	if err != nil {
		return err
	}
	well := !slices.ContainsFunc(found, func(d diagnosis) bool { return !d.well() })
	if c.JSON {
		err = newJSON(a.Stdout).Encode(map[string]any{"well": well, "runtimes": found, "not_tried": untried})
	} else if err = printDiagnoses(a, found); err == nil && len(untried) > 0 {
		_, err = fmt.Fprintf(a.Stdout, "not tried: %s\n", strings.Join(untried, "; "))
	}
	if err == nil && !well {
		err = Exit(exitNo)
	}
	return err
}

// patients are the runtimes to try, those found or the command named, and why
// others of this machine are not tried.
func (c *DoctorCmd) patients(ctx context.Context) (found []patient, untried []string, err error) {
	untried = []string{} // in JSON a list, also when it is empty
	args := c.Command
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) > 0 {
		return []patient{patientOf(args)}, untried, nil
	}
	for _, r := range runtimes {
		switch is, without := r.found(ctx); {
		case is:
			found = append(found, patient{runtimeKind: r, Version: r.versionOf(ctx)})
		case without != "":
			untried = append(untried, without)
		}
	}
	if len(found) == 0 {
		return nil, nil, errors.New("none of the runtimes that heed doctor knows is in the PATH\nName what is to be tried: heed doctor -- CMD {}")
	}
	return found, untried, nil
}

func names(patients []patient) string {
	list := make([]string, len(patients))
	for i, p := range patients {
		list[i] = p.name
	}
	return strings.Join(list, ", ")
}

// printDiagnoses prints the table, and below it what was said where something
// is missing.
func printDiagnoses(a *App, found []diagnosis) error {
	table := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "runtime\tproxy used\thttps trusted\trefusal seen\tmissing")
	explain := false
	for _, d := range found {
		missing := d.Missing
		if missing == "" {
			missing = "-"
		}
		explain = explain || strings.Contains(missing, heedWordIn) || strings.Contains(missing, bundleWordIn)
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", strings.TrimSpace(printable(d.Name+" "+d.Version)), d.proxyWord(), yes(d.Trusted, d.ProxyHTTPS), yes(d.Refusal, d.ProxyHTTP), missing)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, d := range found {
		if d.Said != "" {
			fmt.Fprintf(a.Stdout, "%s said: %s\n", printable(d.Name), d.Said)
		}
	}
	if explain {
		fmt.Fprintln(a.Stdout, heedWordIn+" is where heed listens, such as 127.0.0.1:3128; "+bundleWordIn+" a file with what `heed ca bundle` prints.\n`heed run` and `heed env` set all of these; what is missing did not reach the command.")
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

// yes is the word for a column; what could not be tried has a dash.
func yes(is, tried bool) string {
	switch {
	case is:
		return "yes"
	case tried:
		return "no"
	}
	return "-"
}
