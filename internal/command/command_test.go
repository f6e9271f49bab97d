package command

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"
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
	a := &App{
		Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &errs,
		Environ: []string{"HOME=/nowhere"}, Defaults: builtIn(t), Now: time.Now,
	}
	status := a.main(args)
	return said{status, out.String(), errs.String()}
}

func (s said) is(t *testing.T, status int, out, errors string) {
	t.Helper()
	if s.status != status || s.out != out || s.errors != errors {
		t.Errorf("status %d, stdout %q, stderr %q\nwant %d, %q, %q", s.status, s.out, s.errors, status, out, errors)
	}
}

func TestHeed_AWrongCommandLineIsOneSentenceAndWhatToDo(t *testing.T) {
	says := func(want string, args ...string) {
		t.Helper()
		heed(t, "", args...).is(t, exitUsage, "", "heed: "+want+"\n")
	}
	says("there is no command \"chek\"; did you mean \"check\"?\nSee `heed --help`", "chek")
	says("there is no command \"wget\"; the commands are serve, run, env, check, why, lint, cache, pace, reload, mode, refuse, allow, audit, status, ca, config, doctor\nTo run a program through heed: heed run -- wget", "wget", "-q", "x")
	says("unknown flag --agnt, did you mean \"--agent\"?\nSee `heed check --help`", "check", "--agnt", "x")
	says("unexpected argument shw\nSee `heed config check --help`", "config", "shw")
	says("unexpected argument x\nSee `heed serve --help`", "serve", "x")
	says("there is no URL to check\nWrite one, such as: heed check --agent ExampleBot https://example.org/page", "check")
	says("it depends on who asks\nAdd --agent with a User-Agent string or a product token, such as --agent ExampleBot", "check", "https://example.org/")
	says("there is no file to look at\nName one, or a site: heed lint robots.txt, heed lint https://example.org/", "lint")
	says("--batch takes its URLs from stdin\nLeave out the URLs, or --batch", "check", "--batch", "https://example.org/")
}

func TestHeed_EveryVerbHelpsWithAnExample(t *testing.T) {
	verbs := []string{
		"serve", "run", "env", "check", "lint", "status", "ca path", "ca print", "ca bundle", "ca install",
		"ca uninstall", "ca renew", "config check", "config show",
	}
	for _, verb := range verbs {
		s := heed(t, "", append(strings.Fields(verb), "--help")...)
		if s.status != 0 || s.errors != "" || !strings.Contains(s.out, "Usage: heed "+verb) {
			t.Errorf("heed %s --help: status %d, stderr %q, stdout %q", verb, s.status, s.errors, s.out)
		}
		_, text, _ := strings.Cut(s.out, "\n")
		name, _, _ := strings.Cut(verb, " ")
		if !strings.Contains(text, "heed "+name) {
			t.Errorf("heed %s --help has no example:\n%s", verb, s.out)
		}
	}
	if s := heed(t, "", "--version"); s.status != 0 || s.out != Version()+"\n" {
		t.Errorf("--version: %+v", s)
	}
}

func TestHeed_ErrorsWithAStatusSayNothingMore(t *testing.T) {
	var errs bytes.Buffer
	a := &App{Stderr: &errs, Stdout: io.Discard}
	if got := a.fail(Exit(7)); got != 7 || errs.Len() != 0 {
		t.Errorf("status %d, stderr %q", got, errs.String())
	}
}
