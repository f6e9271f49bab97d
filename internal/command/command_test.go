package command

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"

	"heed/internal/output/console"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// said is what a verb did as seen from outside.
type said struct {
	status      int
	out, errors string
}

// heed runs a command line in this process.
func heed(t *testing.T, stdin string, args ...string) said {
	t.Helper()
	var out, errs bytes.Buffer
	a := &console.App{
		Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &errs,
		Environ: []string{"HOME=/nowhere"}, Defaults: testkit.BuiltIn(t), Now: time.Now,
	}
	status := dispatch(a, args)
	return said{status, out.String(), errs.String()}
}

func (s said) is(t *testing.T, status int, out, errors string) {
	t.Helper()
	must.True(t, s.status == status && s.out == out && s.errors == errors,
		"status %d, stdout %q, stderr %q\nwant %d, %q, %q", s.status, s.out, s.errors, status, out, errors)
}

func TestAWrongCommandLineIsOneSentenceAndWhatToDo(t *testing.T) {
	says := func(want string, args ...string) {
		t.Helper()
		heed(t, "", args...).is(t, console.ExitUsage, "", "heed: "+want+"\n")
	}
	says("there is no command \"chek\"; did you mean \"check\"?\nSee `heed --help`", "chek")
	says("there is no command \"plna\"; did you mean \"plan\"?\nSee `heed --help`", "plna")
	says("there is no command \"wget\"; the commands are "+strings.Join(childNames(model(t).Node), ", ")+"\nTo run a program through heed: heed run -- wget", "wget", "-q", "x")
	says("there is no command \"sumary\"; the commands are "+strings.Join(childNames(model(t).Node), ", ")+"\nSee `heed --help`", "sumary")
	says("there is no command \"report\"; did you mean \"heed audit report\"?\nSee `heed --help`", "report")
	says("there is no command \"verfy\"; did you mean \"heed audit verify\" or \"heed identity verify\"?\nSee `heed --help`", "verfy")
	says("there is no command \"version\"; it is heed --version", "version", "now")
	says("one of these flags is required: --jsonl, --csv\nSee `heed audit export --help`", "audit", "export", "a.db")
	says("unknown flag --agnt, did you mean \"--agent\"?\nSee `heed check --help`", "check", "--agnt", "x")
	says("unknown flag -z\nSee `heed check --help`", "check", "-z")
	says("unknown flag -f\nFiles are named without a flag: heed audit list FILE\nSee `heed audit list --help`", "audit", "list", "-f", "a.db")
	says("unexpected argument 01a2\nA file is named with --file: heed why --file FILE\nSee `heed why --help`", "why", "a.db", "01a2")
	says("heed run has no flag --adit; did you mean \"--audit\"?\nSee `heed run --help`, and write the command behind two dashes: heed run -- CMD", "run", "--adit", "x.db", "--", "true")
	says("heed run has no flag --sealde; did you mean \"--sealed\"?\nSee `heed run --help`, and write the command behind two dashes: heed run -- CMD", "run", "--sealde", "true")
	says("heed run has no flag --nothing-near\nSee `heed run --help`, and write the command behind two dashes: heed run -- CMD", "run", "--nothing-near=1", "--", "true")
	says("unexpected argument shw; did you mean \"heed config show\"?\nSee `heed config --help`", "config", "shw")
	says("unexpected argument compare; the commands are verify, seal, key, prove, check-proof, backup, list, replay, recheck, report, export, diff\nSee `heed audit --help`", "audit", "compare")
	says("unexpected argument proxy.toml\nSee `heed config check --help`", "config", "proxy.toml")
	says("<file> is missing\nWrite: heed identity new <file>\nSee `heed identity new --help`", "identity", "new")
	says("<b> is missing\nWrite: heed audit diff <a> <b>\nSee `heed audit diff --help`", "audit", "diff", "a.db")
	says("heed identity needs a command: new, show, publish, verify\nSee `heed identity --help`", "identity")
	says("--config needs a value\nSee `heed plan --help`", "plan", "--config")
	says("--config needs a value\nSee `heed plan --help`", "plan", "--config", "--agent", "x")
	says("--days: \"x\" is not a whole number\nSee `heed identity new --help`", "identity", "new", "--days", "x", "news.key")
	says("unexpected argument x\nSee `heed serve --help`", "serve", "x")
	says("there is no URL to check\nWrite one, such as: heed check --agent ExampleBot https://example.org/page", "check")
	says("--agent is required: the answer depends on the client's name\nAdd --agent with a User-Agent string or a product token, such as --agent ExampleBot", "check", "https://example.org/")
	says("there is no file to look at\nName one, or a site: heed lint robots.txt, heed lint https://example.org/", "lint")
	says("--batch takes its URLs from stdin\nLeave out the URLs, or --batch", "check", "--batch", "https://example.org/")
}

func TestEveryVerbHelpsWithAnExample(t *testing.T) {
	for _, leaf := range model(t).Leaves(true) {
		verb := strings.TrimPrefix(leaf.Path(), "heed ")
		s := heed(t, "", append(strings.Fields(verb), "--help")...)
		must.True(t, s.status == 0 && s.errors == "" && strings.Contains(s.out, "Usage: heed "+verb),
			"heed %s --help: status %d, stderr %q, stdout %q", verb, s.status, s.errors, s.out)
		_, text, _ := strings.Cut(s.out, "\n")
		must.True(t, regexp.MustCompile(`(?m)^    .*heed `+verb).MatchString(text),
			"heed %s --help has no example:\n%s", verb, s.out)
	}
	s := heed(t, "", "--version")
	must.True(t, s.status == 0 && s.out == console.Build()+"\n", "--version: %+v", s)
}
