package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// Exit statuses beside 0.
const (
	exitNo    = 1 // the answer is no: a URL is refused, heed is not well
	exitUsage = 2 // the question or the surroundings are wrong
)

// App is what every verb's Run method is given: the outside world.
type App struct {
	Stdin    io.Reader
	Stdout   io.Writer // results only
	Stderr   io.Writer // progress, remarks, errors
	Environ  []string  // as os.Environ
	Defaults []byte    // proxy.toml as built in
	Now      func() time.Time
}

// Exit is an error that says only with which status heed ends: what there was
// to say has been said.
type Exit int

// Error returns the status in words.
func (e Exit) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// grammar is the command line: one struct per verb, in the verb's own file.
type grammar struct {
	Version kong.VersionFlag `help:"Print the version and leave."`

	Serve  ServeCmd  `cmd:"" default:"withargs" help:"Run the proxy (what heed does when no command is named)."`
	Run    RunCmd    `cmd:"" help:"Run one command with its requests judged."`
	Env    EnvCmd    `cmd:"" help:"Print the variables that point clients at heed."`
	Check  CheckCmd  `cmd:"" help:"Say whether an agent may fetch URLs, and why."`
	Why    WhyCmd    `cmd:"" help:"Tell one recorded decision, and all that it rested on."`
	Lint   LintCmd   `cmd:"" help:"Say what is odd in a robots.txt, line by line."`
	Cache  CacheCmd  `cmd:"" help:"List, show, forget or fetch the robots.txt files that heed keeps."`
	Pace   PaceCmd   `cmd:"" help:"Say who waits for which site, or end a site's pause."`
	Reload ReloadCmd `cmd:"" help:"Have the running heed read its settings again."`
	Mode   ModeCmd   `cmd:"" help:"Refuse nothing for a while, and say what is only observed."`
	Refuse RefuseCmd `cmd:"" help:"Stop a client, a host or a part of it at once, list and end that."`
	Allow  AllowCmd  `cmd:"" help:"Grant, list or end exceptions for a while."`
	Audit  AuditCmd  `cmd:"" help:"Verify, seal or report on the record of decisions."`
	Status StatusCmd `cmd:"" help:"Say whether the running heed is well."`
	CA     CACmd     `cmd:"" name:"ca" help:"Show, trust, distrust or renew heed's certificate authority."`
	Config ConfigCmd `cmd:"" help:"Check or show the settings."`
	Doctor DoctorCmd `cmd:"" help:"Say whether the runtimes of this machine go through heed, trust it and see refusals."`
}

const description = `heed is a forward HTTP proxy that makes any client obey robots.txt.

  heed serve &             start it
  eval "$(heed env)"       point this shell's programs at it
  heed run -- CMD ARGS...  or do both for one command`

// Main runs the verb that args name and returns the exit status. defaults is
// the built-in proxy.toml.
func Main(args []string, defaults []byte) int {
	app := &App{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Environ: os.Environ(), Defaults: defaults, Now: time.Now,
	}
	return app.main(args)
}

func (a *App) main(args []string) int {
	left := -1 // the status --help and --version end with
	var g grammar
	parser, err := kong.New(&g,
		kong.Name("heed"), kong.Description(description),
		kong.Writers(a.Stdout, a.Stderr),
		kong.Exit(func(code int) { left = code }),
		kong.Vars{"version": Version()},
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoAppDescFormat: true}),
	)
	if err != nil {
		return a.fail(err)
	}
	if err := knownVerb(parser.Model, args); err != nil {
		return a.fail(err)
	}
	ctx, err := parser.Parse(args)
	if left >= 0 {
		return left
	}
	if err != nil {
		return a.fail(usageError(err))
	}
	return a.fail(ctx.Run(a))
}

// knownVerb refuses a first word that is no verb. The parser would take it for
// an argument of serve, which has none.
func knownVerb(model *kong.Application, args []string) error {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		return nil
	}
	var verbs []string
	for _, verb := range model.Children {
		if verb.Name == args[0] {
			return nil
		}
		verbs = append(verbs, verb.Name)
	}
	if near := nearest(args[0], verbs); near != "" {
		return fmt.Errorf("there is no command %q; did you mean %q?\nSee `heed --help`", args[0], near)
	}
	return fmt.Errorf("there is no command %q; the commands are %s\nTo run a program through heed: heed run -- %s", args[0], strings.Join(verbs, ", "), printable(args[0]))
}

// fail prints err as a person should read it and returns the exit status it
// stands for; nil is 0.
func (a *App) fail(err error) int {
	var exit Exit
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return int(exit)
	}
	a.complain(err)
	return exitUsage
}

// usageError adds to a complaint about the command line where help is.
func usageError(err error) error {
	verb := ""
	var parse *kong.ParseError
	if errors.As(err, &parse) && parse.Context.Selected() != nil {
		verb = parse.Context.Selected().Path() + " "
	}
	return fmt.Errorf("%w\nSee `heed %s--help`", err, verb)
}
