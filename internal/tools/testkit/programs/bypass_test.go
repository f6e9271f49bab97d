package programs

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// fast are programs that bypass heed in a few milliseconds. $URL is the page.
var fast = []struct{ name, shell string }{
	{"Node of the system", `/usr/bin/node -e 'fetch(process.env.URL).then(r => r.text()).then(console.log)'`},
	{"Go without a proxy", `"$DIALER" "$URL"`},
	{"Ruby without a proxy", `ruby -ropen-uri -e 'puts URI.open(ENV["URL"], proxy: false).read'`},
	{"PHP without a proxy", `php -n -r 'echo file_get_contents(getenv("URL"));'`},
	{"Perl without a proxy", `perl -MHTTP::Tiny -e 'delete @ENV{grep /proxy/i, keys %ENV}; print HTTP::Tiny->new->get($ENV{URL})->{content}'`},
	{"curl --noproxy", `curl -s --noproxy '*' "$URL"`},
	{"Python without variables", `/usr/bin/env -i URL="$URL" /usr/bin/python3 -c 'import os, urllib.request; print(urllib.request.urlopen(os.environ["URL"]).read().decode())'`},
	{"a static binary", `"$DIALER" "$URL"`},
}

// outcome is what `heed run --json` reports, as far as it matters here.
type outcome struct {
	Requests int
	Bypass   struct {
		Connections int
		Ignoring    []struct{ Program string }
	} `json:"went_round"`
}

// failOnBypass runs a script with --fail-on bypass and returns its output, its status and what
// heed reports.
func (b *bed) failOnBypass(t *testing.T, script string) (stdout string, status int, o outcome) {
	t.Helper()
	cmd := exec.Command(testkit.Binary(t), "run", "--config", b.File, "--json", "--fail-on", "bypass", "--", "sh", "-c", script)
	var errs strings.Builder
	cmd.Dir, cmd.Stderr = t.TempDir(), &errs
	cmd.Env = append(os.Environ(), "HOME="+b.home, "HEED_STATE="+b.State, testkit.RaceOptions, "URL=http://"+b.site+"/private/page.html", "ALLOWED=http://"+b.site+"/page.html",
		"DIALER="+dialer(t), "NODE="+testkit.Node(t))
	out, _ := cmd.Output() // the status is looked at
	if err := json.Unmarshal([]byte(errs.String()), &o); err != nil {
		t.Fatalf("%v\n%s", err, &errs)
	}
	return string(out), cmd.ProcessState.ExitCode(), o
}

// dialer builds a static program that sends requests without a proxy.
func dialer(t *testing.T) string {
	t.Helper()
	path := filepath.Join(testkit.Root(t), ".build/testkit/dialer")
	build := exec.Command("go", "build", "-o", path, "./internal/tools/testkit/seal/testdata/dialer")
	build.Dir, build.Env = testkit.Root(t), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// A program that bypasses heed fails a run with --fail-on bypass each time, however fast it
// is: nothing came through. Beside a client that obeys, Node of the system is named each time,
// and the others where their connection was seen, which is counted and not promised.
func TestFailOnBypass_CatchesFastPrograms(t *testing.T) {
	rounds := map[bool]int{true: 20, false: 2}[testkit.Full]
	b := newBed(t)
	for _, p := range fast {
		alone, seen, ran, beside, named := 0, 0, 0, 0, 0
		for range rounds {
			out, status, o := b.failOnBypass(t, p.shell)
			must.Need(t, strings.Contains(out, secret) && o.Requests == 0, "%s does not bypass heed: %q, %+v", p.name, out, o)
			if status == 3 {
				alone++
			}
			if o.Bypass.Connections > 0 {
				seen++
			}
			if len(o.Bypass.Ignoring) > 0 {
				ran++
			}
			_, status, o = b.failOnBypass(t, `curl -s "$ALLOWED"; `+p.shell)
			must.Need(t, o.Requests == 1, "beside a client that obeys: %+v", o)
			must.Equal(t, status == 3, (o.Bypass.Connections > 0 || len(o.Bypass.Ignoring) > 0), "%s: status %d, %+v", p.name, status, o)
			if status == 3 {
				beside++
			}
			if len(o.Bypass.Ignoring) > 0 {
				named++
			}
		}
		t.Logf("%-25s alone: caught %d of %d (a connection was seen %d times, the program named %d); beside curl: caught %d (named %d)", p.name, alone, rounds, seen, ran, beside, named)
		must.True(t, alone == rounds && (!strings.HasPrefix(p.name, "Node") || named == rounds),
			"%s: caught %d of %d alone, named %d beside a client that obeys", p.name, alone, rounds, named)
	}
}

// A run whose programs obey never fails.
func TestFailOnBypass_SparesHonestRuns(t *testing.T) {
	b := newBed(t)
	honest := []string{
		`curl -s "$ALLOWED"`, `/usr/bin/python3 -c 'import os, urllib.request; print(urllib.request.urlopen(os.environ["ALLOWED"]).read().decode())'`,
		`"$NODE" -e 'fetch(process.env.ALLOWED).then(r => r.text()).then(console.log)'`, `ruby -ropen-uri -e 'puts URI.open(ENV["ALLOWED"]).read'`,
		`perl -MLWP::UserAgent -e 'print LWP::UserAgent->new->get($ENV{ALLOWED})->decoded_content'`,
	}
	for i := range map[bool]int{true: 200, false: 20}[testkit.Full] {
		script := honest[i%len(honest)]
		if out, status, o := b.failOnBypass(t, script); status != 0 || !strings.Contains(out, allowed) {
			t.Errorf("%s: status %d, %q, %+v", script, status, out, o)
		}
	}
}
