// Package walk counts the files and packages that one request runs, and the recorders that
// it is handed to before its answer, and compares them with walk.txt, which a commit that
// changes them changes on purpose:
//
//	HEED_TEST_FULL=1 go test ./internal/tools/walk -update
//
// The file is also the list to read for who wants to know what heed does with a request.
package walk

import (
	"bufio"
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// A file is walked when one of its statements runs at least once for each request of every
// window: what a timer or a commit of many does in between is in some windows only.
const (
	windows  = 4
	requests = 20 // of a window
)

func TestWalk_OfAWarmRequestIsTheOneInTheTable(t *testing.T) {
	if !testkit.Full {
		t.Skip("the files that a request runs, counted by a heed with -cover")
	}
	h, client, counts := start(t)
	refused := measure(t, h, client, counts, "/no/", http.StatusForbidden)
	allowed := measure(t, h, client, counts, "/yes/", http.StatusOK)
	got := table(t, map[string]walked{"403": refused, "200": allowed})
	if *testkit.Update {
		testkit.Write(t, "walk.txt", got)
	}
	if want := testkit.Read(t, "walk.txt"); got != want {
		t.Errorf("walk.txt has another walk; if this one is meant, write it with -update:\n%s", difference(want, got))
	}
}

// start runs a heed that counts its statements, and returns it with a client on one
// connection and the folder of the counts.
func start(t *testing.T) (h *testkit.Heed, client *http.Client, counts string) {
	root := testkit.Root(t)
	counts = t.TempDir()
	covered := filepath.Join(root, ".build", "testkit", "covered")
	build := exec.Command("go", "build", "-cover", "-covermode=atomic", "-coverpkg=heed/...", "-o", covered, "./internal/tools/walk/covered")
	build.Dir = root
	out, err := build.CombinedOutput()
	must.Need(t, err == nil, "%v\n%s", err, out)
	site := testkit.Site{Name: "site.test", Robots: "User-agent: *\nDisallow: /no/\n", Files: map[string]string{}}
	for n := range (windows + 1) * requests {
		site.Files["/yes/"+strconv.Itoa(n)] = "hello\n"
	}
	origin := testkit.NewOrigin(t, site)
	t.Setenv("HEED_TEST_BINARY", covered) // see testkit.Binary
	h = testkit.Start(t, testkit.Options{Config: origin.Config(""), Env: []string{
		"HEED_WALK_DEFAULTS=" + filepath.Join(root, "proxy.toml"), "HEED_WALK_COUNTS=" + counts,
	}})
	transport := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: h.Addr})}
	t.Cleanup(transport.CloseIdleConnections)
	return h, &http.Client{Transport: transport, Timeout: testkit.Patience}, counts
}

// walked is what a request runs: the files of heed, and the methods Decided among them.
type walked struct {
	files     map[string]bool
	recorders map[string]bool
}

var signals int // sent to heed

// measure asks for paths below dir, which are answered with a status: in one window to warm
// heed up, and then in those that are measured.
func measure(t *testing.T, h *testkit.Heed, client *http.Client, counts, dir string, status int) (w walked) {
	tell := func(s syscall.Signal) {
		h.Signal(s)
		signals++
		h.AwaitText(fmt.Sprintf("walk: signal %d obeyed (<nil>)", signals))
	}
	for window := range windows + 1 {
		tell(syscall.SIGUSR1)
		last := ""
		for n := range requests {
			last = "http://site.test" + dir + strconv.Itoa(window*requests+n)
			answer := must.Get(client.Get(last))(t)
			_, _ = io.Copy(io.Discard, answer.Body)
			answer.Body.Close()
			must.Need(t, answer.StatusCode == status, "%s: %s", last, answer.Status)
		}
		h.AwaitURL(last)
		tell(syscall.SIGUSR2)
		if ran := profile(t, counts); window == 1 {
			w = ran
		} else if window > 1 {
			maps.DeleteFunc(w.files, func(name string, _ bool) bool { return !ran.files[name] })
			maps.DeleteFunc(w.recorders, func(name string, _ bool) bool { return !ran.recorders[name] })
		}
	}
	return w
}

// block is a line of a profile: file, line of the beginning, and how often it ran.
var block = regexp.MustCompile(`^(heed/\S+\.go):(\d+)\.\d+,\d+\.\d+ \d+ (\d+)$`)

// profile reads the counts that heed has written, and removes them.
func profile(t *testing.T, counts string) walked {
	text := filepath.Join(t.TempDir(), "profile")
	if out, err := exec.Command("go", "tool", "covdata", "textfmt", "-i", counts, "-o", text).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	written, err := filepath.Glob(filepath.Join(counts, "covcounters.*"))
	must.Need(t, err == nil && len(written) == 1, "%v %v", written, err)
	must.OK(t, os.Remove(written[0]))
	w := walked{map[string]bool{}, map[string]bool{}}
	lines := bufio.NewScanner(strings.NewReader(testkit.Read(t, text)))
	for lines.Scan() {
		m := block.FindStringSubmatch(lines.Text())
		if m == nil || strings.HasPrefix(m[1], "heed/internal/tools/") {
			continue
		}
		if count, _ := strconv.Atoi(m[3]); count < requests {
			continue
		}
		w.files[m[1]] = true
		line, _ := strconv.Atoi(m[2])
		for _, of := range recorders(t, m[1]) {
			if of.from <= line && line <= of.to {
				w.recorders[of.name] = true
			}
		}
	}
	return w
}

// recorder is a method Decided, with its lines.
type recorder struct {
	name     string
	from, to int
}

var parsed = map[string][]recorder{}

// recorders returns the methods Decided of a file that do not call another one.
func recorders(t *testing.T, name string) []recorder {
	all, known := parsed[name]
	if known {
		return all
	}
	set := token.NewFileSet()
	f := must.Get(parser.ParseFile(set, filepath.Join(testkit.Root(t), strings.TrimPrefix(name, "heed/")), nil, 0))(t)
	for _, d := range f.Decls {
		m, ok := d.(*ast.FuncDecl)
		if !ok || m.Recv == nil || m.Name.Name != "Decided" {
			continue
		}
		passesOn := false
		ast.Inspect(m.Body, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			passesOn = passesOn || ok && s.Sel.Name == "Decided"
			return true
		})
		if !passesOn {
			all = append(all, recorder{name, set.Position(m.Pos()).Line, set.Position(m.End()).Line})
		}
	}
	parsed[name] = all
	return all
}

// table returns the walks as text: the numbers, and each file with the requests that run it.
func table(t *testing.T, walks map[string]walked) string {
	var out bytes.Buffer
	of := map[string][]string{}
	for _, status := range slices.Sorted(maps.Keys(walks)) {
		w, packages := walks[status], map[string]bool{}
		for name := range w.files {
			packages[path.Dir(name)] = true
			of[name] = append(of[name], status)
		}
		fmt.Fprintf(&out, "a warm %s: %d files, %d packages, %d recorders before the answer\n", status, len(w.files), len(packages), len(w.recorders))
	}
	out.WriteByte('\n')
	for _, name := range slices.Sorted(maps.Keys(of)) {
		fmt.Fprintf(&out, "%-7s %s\n", strings.Join(of[name], " "), strings.TrimPrefix(name, "heed/"))
	}
	return out.String()
}

// difference returns the lines that only one of two texts has.
func difference(want, got string) string {
	var out strings.Builder
	for _, side := range []struct{ sign, of, other string }{{"-", want, got}, {"+", got, want}} {
		others := strings.Split(side.other, "\n")
		for line := range strings.SplitSeq(side.of, "\n") {
			if !slices.Contains(others, line) {
				out.WriteString(side.sign + " " + line + "\n")
			}
		}
	}
	return out.String()
}
