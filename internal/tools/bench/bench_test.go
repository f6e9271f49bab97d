package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// TestMain lets the test program be the load generator and the proxies, as the
// benchmark is.
func TestMain(m *testing.M) {
	if status, ran := runRole(); ran {
		os.Exit(status)
	}
	testkit.Main(m, 2)
}

// A maintainer changes the harness: each case still runs against the real heed, its
// answers are the site's, and the report has a line for each. In the long form only: it
// starts each case's site, load and heed.
func TestEachCaseRunsAgainstHeed(t *testing.T) {
	if !testkit.Full {
		t.Skip("internal/tools/bench: its cases and series against heed")
	}
	b := smallBench(t)
	rep := must.Get(b.run(t.Context()))(t)
	for i, c := range rep.Cases {
		if len(c.Contenders) != 1 || c.Name != b.cases[i].name {
			t.Fatalf("%s: the report has %+v", b.cases[i].name, c)
		}
		e := c.Contenders[0]
		if e.Wrong != 0 || e.FirstWrong != "" {
			t.Errorf("%s: %d wrong answers, the first: %s", c.Name, e.Wrong, e.FirstWrong)
		}
		if e.Samples[0].Requests == 0 {
			t.Errorf("%s: no request was sent", c.Name)
		}
		if c.Name == "tls-resumed" && e.Samples[0].Resumed == 0 {
			t.Error("no TLS session was resumed")
		}
	}
	must.Equal(t, len(rep.Cases), len(b.cases), "of %d cases are in the report", len(b.cases))
}

// smallBench is a benchmark of heed alone that takes little time.
func smallBench(t *testing.T) *bench {
	t.Helper()
	small := scale{Conns: 2, Hosts: 20, Paths: 20, Idle: 20, Large: 1 << 20}
	dir := t.TempDir()
	must.OK(t, os.Chmod(dir, 0o755))
	self := must.Get(os.Executable())(t)
	return &bench{
		dir: dir, self: self, scale: small, cases: workloads(small), contenders: contenders(testkit.Binary(t), "", "")[:1],
		rounds: 1, slice: 100 * time.Millisecond, progress: func(string) {},
	}
}

// A proxy that sends another body, another status or half an answer is found out.
func TestWrongAnswersAreFound(t *testing.T) {
	l := &load{job: job{Status: 200, Size: 100}, body: body(100)}
	site := body(100)
	if err := l.check(200, bytes.NewReader(site)); err != nil {
		t.Errorf("the site's own answer: %v", err)
	}
	changed := bytes.Clone(site)
	changed[50]++
	for name, wrong := range map[string]error{
		"a status":       l.check(502, bytes.NewReader(site)),
		"a changed byte": l.check(200, bytes.NewReader(changed)),
		"too little":     l.check(200, bytes.NewReader(site[:99])),
		"too much":       l.check(200, bytes.NewReader(append(site, 'x'))),
		"a broken body":  l.check(200, io.MultiReader(bytes.NewReader(site), failing{})),
	} {
		if wrong == nil {
			t.Errorf("%s was not found", name)
		}
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("reset") }

func TestQuantilesAndRatios(t *testing.T) {
	for _, c := range []struct {
		values []float64
		q      float64
		want   float64
	}{
		{nil, 0.5, 0},
		{[]float64{7}, 0.99, 7},
		{[]float64{3, 1, 2}, 0.5, 2},
		{[]float64{4, 1, 3, 2}, 0.5, 2.5},
		{[]float64{1, 2, 3, 4, 5}, 0.25, 2},
		{[]float64{1, 2}, 1, 2},
	} {
		if got := quantile(c.values, c.q); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("quantile(%v, %v) is %v, not %v", c.values, c.q, got, c.want)
		}
	}
	// A machine that is three times slower in one round changes no ratio.
	if got, ok := ratio([]float64{8, 24, 8}, []float64{10, 30, 10}); !ok || math.Abs(got-0.8) > 1e-9 {
		t.Errorf("the ratio is %v, %v", got, ok)
	}
	if _, ok := ratio([]float64{1}, []float64{0}); ok {
		t.Error("a cost of nothing has a ratio")
	}
}

// The figures of a process are those that the system counts, also for a process with
// an odd name.
func TestStatOfAProcess(t *testing.T) {
	line := "42 (a) b (c) S 7 42 42 0 -1 4194304 100 0 0 0 150 50 20 30 20 0 9 0 1000 100000000 256 18446744073709551615"
	got, err := parseStat([]byte(line))
	want := stat{pid: 42, parent: 7, cpu: 2500 * time.Millisecond, resident: 256 * int64(os.Getpagesize())}
	if err != nil || got != want {
		t.Errorf("%+v, %v instead of %+v", got, err, want)
	}
	for _, broken := range []string{"", "42", "x (a) S 1", "42 (a) S", "42 (a) S 7 x"} {
		if s, err := parseStat([]byte(broken)); err == nil {
			t.Errorf("%q is read as %+v", broken, s)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("42 (a) b (c) S 7 42 42 0 -1 4194304 100 0 0 0 150 50 20 30 20 0 9 0 1000 100000000 256 1"))
	f.Add([]byte(")("))
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, err := parseStat(text); err == nil && !bytes.Contains(text, []byte(")")) {
			t.Errorf("%q has no name and is read", text)
		}
	})
}

// The CPU time that a child used, and that of a child that has ended, are the
// parent's.
func TestUsageCountsChildren(t *testing.T) {
	const burn = `i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done`
	cmd := exec.Command("sh", "-c", `sh -c '`+burn+`'; sh -c '`+burn+`; echo done; read end'; true`)
	out := must.Get(cmd.StdoutPipe())(t)
	in := must.Get(cmd.StdinPipe())(t)
	notOrphaned(cmd)
	must.OK(t, cmd.Start())
	before, _ := must.Two(usage(cmd.Process.Pid))(t)
	must.Get(io.ReadFull(out, make([]byte, 4)))(t)
	after, resident, err := usage(cmd.Process.Pid)
	if err == nil && (after <= before || resident == 0) {
		t.Errorf("%v before, %v after, %d bytes", before, after, resident)
	}
	in.Close()
	cmd.Wait()
	if _, _, err := usage(cmd.Process.Pid); err == nil {
		t.Error("a process that has ended has a usage")
	}
}

func sampleReport() report {
	samples := func(costs ...float64) (all []sample) {
		for _, c := range costs {
			all = append(all, sample{Cost: c, Requests: 10})
		}
		return all
	}
	r := newReport(3, time.Second)
	w := workload{name: "plain-1k", title: "plain & <simple>", unit: requestCPU}
	r.Cases = []caseReport{newCaseReport(w, []*entrant{
		{contender: contender{name: "heed"}, samples: samples(8, 24, 8)},
		{contender: contender{name: "squid"}, samples: samples(10, 30, 10), wrong: 2, first: "status 502 instead of 200"},
		{contender: contender{name: "slow"}, samples: samples(800, 2400, 800)},
	})}
	return r
}

// The table, the JSON and the chart of a run agree.
func TestReport(t *testing.T) {
	r := sampleReport()
	squid := r.Cases[0].Contenders[1]
	if math.Abs(squid.Ratio-0.8) > 1e-9 || squid.Median != 10 || squid.UpperQuart != 20 || r.wrong() != 2 {
		t.Errorf("%+v, %d wrong", squid, r.wrong())
	}
	var table strings.Builder
	must.OK(t, r.table(&table))
	for _, want := range []string{"squid", "0.80", "status 502 instead of 200"} {
		must.Contain(t, table.String(), want, "%q is not in\n%s", want, &table)
	}
	path := filepath.Join(t.TempDir(), "out.json")
	must.OK(t, r.writeJSON(path))
	text, err := os.ReadFile(path)
	var back report
	if err != nil || json.Unmarshal(text, &back) != nil || back.Cases[0].Contenders[1].Ratio != squid.Ratio {
		t.Errorf("%v: %s", err, text)
	}
}

// The chart is an XML document that a browser accepts, and nothing leaves its frame.
func TestChart(t *testing.T) {
	text := sampleReport().svg()
	bars := elements(t, text, "line")
	if bars != 3 || !strings.Contains(text, "plain &amp; &lt;simple&gt;") || !strings.Contains(text, "(100.00, cut)") {
		t.Errorf("%d bars in\n%s", bars, text)
	}
}

// elements returns how many elements of that name an XML document has.
func elements(t *testing.T, text, name string) (n int) {
	t.Helper()
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return n
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == name {
			n++
		}
	}
}

// A name on the command line that does not exist is an error that lists those that do.
func TestChoose(t *testing.T) {
	name := func(w workload) string { return w.name }
	chosen, err := choose(workloads(fullScale), name, "tls-new,plain-1k")
	if err != nil || names(chosen, name) != "plain-1k,tls-new" {
		t.Errorf("%v, %v", chosen, err)
	}
	if _, err := choose(workloads(fullScale), name, "plain-1k,plain"); err == nil || !strings.Contains(err.Error(), "plain-100k") {
		t.Errorf("%v", err)
	}
}
