package main

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heed/internal/tools/testkit/must"
)

// A module of three packages: one passes, one has a test that fails, one does not compile.
func TestAFailureIsReportedWithTheCommandThatRepeatsIt(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":             "module sample\n\ngo 1.26\n",
		"well/well_test.go":  "package well\n\nimport \"testing\"\n\nfunc TestWell(t *testing.T) { t.Log(\"not shown\") }\n",
		"ill/ill_test.go":    "package ill\n\nimport \"testing\"\n\nfunc TestIll(t *testing.T) { t.Run(\"part\", func(t *testing.T) { t.Error(\"the cause\") }) }\n",
		"panic/some_test.go": "package some\n\nimport \"testing\"\n\nfunc TestPanics(t *testing.T) { panic(\"the panic\") }\n",
		"none/none.go":       "package none\n",
		"broken/b_test.go":   "package broken\n\nvar x int = \"\"\n",
	} {
		path := filepath.Join(dir, name)
		must.OK(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.OK(t, os.WriteFile(path, []byte(text), 0o644))
	}
	t.Chdir(dir)
	printed := filepath.Join(dir, "out")
	out := must.Get(os.Create(printed))(t)
	stdout := os.Stdout
	os.Stdout = out
	failed, err := run([]string{"-vet=off"}, []string{"./..."})
	os.Stdout = stdout
	must.True(t, err == nil && failed, "failed is %v, the error %v", failed, err)
	text := must.Get(os.ReadFile(printed))(t)
	got := string(text)
	for _, want := range []string{
		"ok  \tsample/well\t", "FAIL\tsample/ill\t", "the cause", "the panic", "FAIL\tsample/broken\t", "cannot use \"\"", "[4 of 4]",
		"to repeat it alone: go test -count=1 -v -run '^TestIll$' ./ill\n",
		"to repeat it alone: go test -count=1 ./broken\n",
		"the slowest tests", "1 passed, 3 failed\n",
	} {
		must.Contain(t, got, want, "there is no %q", want)
	}
	must.True(t, !strings.Contains(got, "not shown") && !strings.Contains(got, "sample/none"), "what passed is shown")
	if t.Failed() {
		t.Logf("printed:\n%s", got)
	}
}

// The race detector is a part of what is repeated, and the order is that of the times.
func TestTheSlowestTestsComeFirst(t *testing.T) {
	var out strings.Builder
	r := newReport(&out, []string{"-race", "-gcflags=a=-race=false", "-p", "3"}, 1)
	r.read(bufio.NewReader(strings.NewReader(`{"Action":"pass","Package":"heed/a","Test":"TestQuick","Elapsed":0.1}
{"Action":"fail","Package":"heed/a","Test":"TestSlow","Elapsed":70}
{"Action":"skip","Package":"heed/a","Test":"TestLeftOut"}
no event
{"Action":"fail","Package":"heed/a","Elapsed":71}
`)))
	r.end()
	for _, want := range []string{
		"go test -race -gcflags=a=-race=false -count=1 -v -run '^TestSlow$' ./a\n", "no event\n",
		"   1m10s  ./a TestSlow\n   100ms  ./a TestQuick\n1 passed, 1 failed\n",
	} {
		must.Contain(t, out.String(), want)
	}
}
