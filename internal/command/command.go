// Package command holds the grammar of the command line and the short commands.
// It is the only package that imports all of the others.
//
// It parses with github.com/alecthomas/kong, which no other package imports: a command is a
// struct with its flags, which its own package declares without that library.
package command

import (
	_ "embed" // help.txt
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"heed/internal/check"
	"heed/internal/command/auditcmd"
	"heed/internal/command/doctor"
	"heed/internal/command/identity"
	"heed/internal/command/plancmd"
	"heed/internal/command/studycmd"
	"heed/internal/config/clientenv"
	"heed/internal/daemon"
	"heed/internal/daemon/run"
	"heed/internal/output/console"
)

// grammar is the command line: one struct per verb, in the verb's own file.
type grammar struct {
	Version kong.VersionFlag `help:"Print the version and exit."`

	Serve  daemon.ServeCmd   `cmd:"" default:"withargs" help:"Run the proxy (the default command)."`
	Run    run.RunCmd        `cmd:"" help:"Run one command behind heed and print a summary."`
	Env    clientenv.EnvCmd  `cmd:"" help:"Print the variables that point clients at heed."`
	Check  check.CheckCmd    `cmd:"" help:"Check whether an agent may fetch URLs, and why."`
	Plan   plancmd.PlanCmd   `cmd:"" help:"Sum up in advance what a crawl gets and how long it takes."`
	Why    auditcmd.WhyCmd   `cmd:"" help:"Explain one recorded decision: rules, settings and request."`
	Lint   check.LintCmd     `cmd:"" help:"Check robots.txt files for mistakes, line by line."`
	Cache  CacheCmd          `cmd:"" help:"List, show, purge or fetch stored robots.txt files."`
	Pace   PaceCmd           `cmd:"" help:"List the sites where requests wait, or end a site's pause."`
	Reload ReloadCmd         `cmd:"" help:"Make the running heed read its settings again."`
	Mode   ModeCmd           `cmd:"" help:"Switch to observe mode for a limited time, or back."`
	Refuse RefuseCmd         `cmd:"" help:"Block a client or a host immediately; list or lift blocks."`
	Allow  AllowCmd          `cmd:"" help:"Grant, list or end temporary exceptions."`
	Audit  auditcmd.AuditCmd `cmd:"" help:"Report on, search, verify, seal or export the record."`
	Study  studycmd.StudyCmd `cmd:"" help:"Compute from access logs what robots did at a site."`
	Status StatusCmd         `cmd:"" help:"Show the health of the running heed; exit 1 if unhealthy."`
	CA     CACmd             `cmd:"" name:"ca" help:"Show, install, remove or renew heed's CA."`

	Identity identity.IdentityCmd `cmd:"" help:"Make, publish and verify keys of signed requests."`
	Config   ConfigCmd            `cmd:"" help:"Check or show the settings."`
	Doctor   doctor.DoctorCmd     `cmd:"" help:"List the runtimes that ignore proxies, or try a command."`
	Help     HelpCmd              `cmd:"" help:"List the topics of the manual, or print one."`
}

const description = `heed is a forward HTTP proxy that makes any client obey robots.txt.

  heed serve &             start it
  eval "$(heed env)"       point this shell's programs at it
  heed run -- CMD ARGS...  or do both for one command
  heed help                list the topics of the manual`

// helpText is what --help prints at the end, by command.
//
//go:embed help.txt
var helpText string

// addDetails gives node and the commands below it their parts of helpText.
func addDetails(node *kong.Node) {
	_, part, _ := strings.Cut(helpText, "\n## "+node.Path()+"\n")
	part, _, _ = strings.Cut(part, "\n## ")
	node.Detail = strings.TrimRight(part, "\n")
	for _, child := range node.Children {
		addDetails(child)
	}
}

// Model returns the grammar of the command line, for documents that are made from it.
func Model() (*kong.Application, error) {
	parser, err := kong.New(new(grammar), kong.Name("heed"), kong.Description(description), kong.Vars{"version": ""})
	if err != nil {
		return nil, err
	}
	addDetails(parser.Model.Node)
	return parser.Model, nil
}

// Main runs the verb that args name and returns the exit status. defaults is
// the built-in proxy.toml.
func Main(args []string, defaults []byte) int {
	app := &console.App{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Environ: os.Environ(), Defaults: defaults, Now: time.Now,
	}
	return dispatch(app, args)
}

// grammarFor returns a pointer to a grammar, or to the part of one that holds only
// the verb that args begin with. A parser of the whole grammar takes longer to build
// than most commands take to run. Only the command help looks at the other verbs.
func grammarFor(args []string) any {
	whole := reflect.TypeFor[grammar]()
	var fields []reflect.StructField
	verb := false
	for i := range whole.NumField() {
		field := whole.Field(i)
		_, command := field.Tag.Lookup("cmd")
		if named := len(args) > 0 && args[0] == strings.ToLower(field.Name); command && !named {
			continue
		}
		verb = verb || command && args[0] != "help"
		fields = append(fields, field)
	}
	if !verb {
		return new(grammar)
	}
	return reflect.New(reflect.StructOf(fields)).Interface()
}

// dispatch runs the verb that args name and returns the exit status.
func dispatch(a *console.App, args []string) int {
	left := -1 // the status --help and --version end with
	parser, err := kong.New(grammarFor(args),
		kong.Name("heed"), kong.Description(description),
		kong.Writers(a.Stdout, a.Stderr),
		kong.Exit(func(code int) { left = code }),
		kong.Vars{"version": console.Build()},
		kong.KindMapper(reflect.String, kong.MapperFunc(decodeText)),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoAppDescFormat: true}),
	)
	if err != nil {
		return a.Fail(err)
	}
	addDetails(parser.Model.Node)
	if err := knownVerb(parser.Model, args); err != nil {
		return a.Fail(err)
	}
	ctx, err := parser.Parse(args)
	if left >= 0 {
		return left
	}
	if err != nil {
		return a.Fail(usageError(err))
	}
	if err := unknownRunFlag(ctx.Selected()); err != nil {
		return a.Fail(err)
	}
	return a.Fail(ctx.Run(a))
}

// unknownRunFlag returns an error for a flag that heed run does not have. The parser takes it
// for the beginning of the command, which is behind two dashes when it begins with one.
func unknownRunFlag(node *kong.Node) error {
	if node == nil || node.Target.Type() != reflect.TypeFor[run.RunCmd]() {
		return nil
	}
	words := node.Target.Interface().(run.RunCmd).Command
	if len(words) == 0 || words[0] == "--" || !strings.HasPrefix(words[0], "-") {
		return nil
	}
	flag, _, _ := strings.Cut(words[0], "=")
	text := "heed run has no flag " + console.Quoted(flag)
	var names []string
	for _, f := range slices.Concat(node.AllFlags(false)...) {
		names = append(names, "--"+f.Name)
	}
	if near := console.Nearest(flag, names); near != "" {
		text += fmt.Sprintf("; did you mean %q?", near)
	}
	return fmt.Errorf("%s\nSee `heed run --help`, and write the command behind two dashes: heed run -- CMD", text)
}

// decodeText reads a text of the command line byte for byte: kong's own mapper replaces
// octets that are not UTF-8, in URLs, in names of files and in arguments of heed run's command.
func decodeText(c *kong.DecodeContext, target reflect.Value) error {
	t, err := c.Scan.PopValue("string")
	if err != nil {
		return err
	}
	text, is := t.Value.(string)
	if !is {
		return fmt.Errorf("%v is not a text", t.Value)
	}
	target.SetString(text)
	return nil
}

// knownVerb returns an error for a first word that is not a verb. The parser would
// take it for an argument of serve, which has none.
func knownVerb(model *kong.Application, args []string) error {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		return nil
	}
	verbs := childNames(model.Node)
	if slices.Contains(verbs, args[0]) {
		return nil
	}
	if args[0] == "version" {
		return errors.New("there is no command \"version\"; it is heed --version")
	}
	if near := console.Nearest(args[0], verbs); near != "" {
		return fmt.Errorf("there is no command %q; did you mean %q?\nSee `heed --help`", args[0], near)
	}
	leaves := map[string][]string{}
	for _, leaf := range model.Leaves(true) {
		leaves[leaf.Name] = append(leaves[leaf.Name], "heed "+leaf.Path())
	}
	if near := console.Nearest(args[0], slices.Sorted(maps.Keys(leaves))); near != "" {
		return fmt.Errorf("there is no command %q; did you mean \"%s\"?\nSee `heed --help`", args[0], strings.Join(leaves[near], "\" or \""))
	}
	next := "See `heed --help`"
	if _, err := exec.LookPath(args[0]); err == nil {
		next = "To run a program through heed: heed run -- " + console.Printable(args[0])
	}
	return fmt.Errorf("there is no command %q; the commands are %s\n%s", args[0], strings.Join(verbs, ", "), next)
}

// usageError words an error of the parser about the command line, and adds what to type.
func usageError(err error) error {
	text := parserWords(err.Error())
	var parse *kong.ParseError
	if !errors.As(err, &parse) || parse.Context.Selected() == nil {
		return fmt.Errorf("%s\nSee `heed --help`", text)
	}
	node := parse.Context.Selected()
	verb := node.Path()
	if flag, near, found := strings.Cut(text, ", did you mean one of "); found && len(flag) == len("unknown flag -x") && strings.Contains(near, `"-h"`) {
		text = flag // all letters are near to each other
	}
	if strings.HasPrefix(text, "expected one of ") {
		return fmt.Errorf("heed %s needs a command: %s\nSee `heed %s --help`", verb, strings.Join(childNames(node), ", "), verb)
	}
	if missing, found := strings.CutPrefix(text, `expected "`); found {
		missing = strings.TrimSuffix(missing, `"`)
		line := []string{"heed", verb}
		for _, arg := range node.Positional {
			line = append(line, arg.Summary())
		}
		return fmt.Errorf("%s is missing\nWrite: %s\nSee `heed %s --help`", missing, strings.Join(line, " "), verb)
	}
	if record := recordWords(text, node); record != "" {
		return fmt.Errorf("%s\n%s\nSee `heed %s --help`", text, record, verb)
	}
	if word, found := strings.CutPrefix(text, "unexpected argument "); found && node.Parent.Type == kong.CommandNode {
		if near := console.Nearest(word, childNames(node.Parent)); near != "" {
			return fmt.Errorf("%s; did you mean \"heed %s %s\"?\nSee `heed %s --help`", text, node.Parent.Path(), near, node.Parent.Path())
		}
	} else if names := childNames(node); found && len(names) > 0 && !strings.Contains(word, "did you mean") {
		text += "; the commands are " + strings.Join(names, ", ")
	}
	return fmt.Errorf("%s\nSee `heed %s --help`", text, verb)
}

// recordWords says how a command takes files, where the error is that another way was tried: some
// take them as arguments, and some, which have an argument already, with the flag --file.
func recordWords(text string, node *kong.Node) string {
	takes := slices.ContainsFunc(node.Positional, func(v *kong.Value) bool { return v.Name == "file" })
	flag := slices.ContainsFunc(node.Flags, func(f *kong.Flag) bool { return f.Name == "file" && f.Short == 'f' })
	switch {
	case takes && (strings.HasPrefix(text, "unknown flag -f") || strings.HasPrefix(text, "unknown flag --file")):
		return fmt.Sprintf("Files are named without a flag: heed %s FILE", node.Path())
	case flag && strings.HasPrefix(text, "unexpected argument "):
		return fmt.Sprintf("A file is named with --file: heed %s --file FILE", node.Path())
	}
	return ""
}

// childNames returns the commands below a node, in the order of the grammar.
func childNames(node *kong.Node) []string {
	var names []string
	for _, child := range node.Children {
		if !child.Hidden {
			names = append(names, child.Name)
		}
	}
	return names
}

// parserWords puts what the parser expects of a value into a sentence.
func parserWords(text string) string {
	if flags, found := strings.CutPrefix(text, "missing flags: "); found {
		return "one of these flags is required: " + strings.ReplaceAll(flags, " or ", ", ")
	}
	name, fault, found := strings.Cut(text, ": expected ")
	if !found {
		return text
	}
	kind, got, _ := strings.Cut(fault, " but got ")
	switch {
	case strings.HasSuffix(kind, " value"):
		return name + " needs a value"
	case strings.HasSuffix(kind, "int"):
		return fmt.Sprintf("%s: %s is not a whole number", name, got)
	}
	return text
}
