package accesslog_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"heed/internal/analysis/accesslog"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// sorted reads logs and checks that the order is that of time, then of the files, then of
// the lines.
func sorted(t *testing.T, o accesslog.Options) ([]accesslog.Request, accesslog.Counts) {
	t.Helper()
	got, counts := all(t, o)
	place := map[string]int{"standard input": slices.Index(o.Files, "-")}
	for i, name := range o.Files {
		if name != "-" {
			place[name] = i
		}
	}
	for i := 1; i < len(got); i++ {
		a, b := got[i-1], got[i]
		if c := a.Time.Compare(b.Time); c > 0 || c == 0 && (place[a.Source] > place[b.Source] || a.Source == b.Source && a.Line >= b.Line) {
			t.Fatalf("%s:%d at %s is before %s:%d at %s", a.Source, a.Line, a.Time, b.Source, b.Line, b.Time)
		}
	}
	return got, counts
}

// shuffled returns the numbers below n, each at most by reach from its place; 0: anywhere.
func shuffled(n, reach int) []int {
	random := rand.New(rand.NewPCG(1, uint64(reach)))
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	if reach == 0 {
		random.Shuffle(n, func(i, j int) { order[i], order[j] = order[j], order[i] })
		return order
	}
	key := make([]int, n)
	for i := range key {
		key[i] = i + random.IntN(reach)
	}
	slices.SortStableFunc(order, func(a, b int) int { return key[a] - key[b] })
	return order
}

func logOf(order []int) string {
	var b strings.Builder
	for _, n := range order {
		b.WriteString(combinedLine(n/3, fmt.Sprintf("/%d", n)))
	}
	return b.String()
}

func TestReader_LinesOutOfOrderArePutInOrderAndMarked(t *testing.T) {
	t.Parallel()
	const n = 40_000
	for _, disorder := range []struct {
		reach  int
		sorted bool
	}{{1, false}, {2, false}, {100, false}, {10_000, false}, {0, true}} {
		order := shuffled(n, disorder.reach)
		late := int64(0)
		for i := 1; i < n; i++ {
			if order[i]/3 < order[i-1]/3 {
				late++
			}
		}
		for _, name := range []string{"access.log", "-"} {
			tmp := t.TempDir()
			o := accesslog.Options{Files: []string{name}, Stdin: strings.NewReader(logOf(order)), TempDir: tmp, Memory: 1 << 20}
			if name != "-" {
				o.Files[0] = file(t, name, logOf(order))
				if !disorder.sorted {
					o.TempDir = "/nonexistent" // it is streamed
				}
			}
			got, counts := sorted(t, o)
			marked := int64(0)
			for _, q := range got {
				if q.OutOfOrder {
					marked++
				}
			}
			if len(got) != n || counts.Lines != n || marked != late {
				t.Errorf("%s, reach %d: %d requests of %d lines, %d marked, want %d", name, disorder.reach, len(got), counts.Lines, marked, late)
			}
			left, err := os.ReadDir(tmp)
			must.True(t, err == nil && len(left) == 0, "left in the temporary directory: %v, %v", left, err)
		}
	}
}

// Rotated logs overlap, are named in any order, and one of them may be out of order.
func TestReader_SeveralFilesAreMergedByTime(t *testing.T) {
	t.Parallel()
	const files, each = 60, 500
	dir := t.TempDir()
	o := accesslog.Options{Memory: 64 << 10, TempDir: t.TempDir()}
	for i := range files {
		order := make([]int, 0, each)
		for n := range each {
			order = append(order, i*each/2+n) // half of it is in the next file, too
		}
		if i%7 == 3 {
			slices.Reverse(order)
			order = append(order, shuffled(20_000, 0)...)
		}
		path := testkit.Write(t, filepath.Join(dir, fmt.Sprintf("access.log.%d", files-i)), logOf(order))
		o.Files = append(o.Files, path)
	}
	o.Files = append(o.Files, "-")
	o.Stdin = strings.NewReader(logOf(shuffled(3000, 50)))
	got, counts := sorted(t, o)
	want := files*each + 3000
	for i := range files {
		if i%7 == 3 {
			want += 20_000
		}
	}
	must.True(t, len(got) == want && counts.Unparsed == 0, "%d requests, want %d; %+v", len(got), want, counts.Problems)
}

// Two servers in different zones, and a clock that is set back by two hours.
func TestReader_ZonesAndStepsOfTheClock(t *testing.T) {
	t.Parallel()
	line := func(stamp, target string) string {
		return fmt.Sprintf("192.0.2.7 - - [%s] \"GET %s HTTP/1.1\" 200 5 \"-\" \"-\"\n", stamp, target)
	}
	east := file(t, "east.log", line("01/Mar/2025:12:00:00 +0200", "/1")+line("01/Mar/2025:12:00:02 +0200", "/3")+line("01/Mar/2025:10:00:02 +0200", "/0"))
	west := file(t, "west.log", line("01/Mar/2025:05:00:01 -0500", "/2")+line("01/Mar/2025:05:00:60 -0500", "/4"))
	got, counts := sorted(t, accesslog.Options{Files: []string{east, west}})
	check(t, got, `
		2025-03-01T10:00:02+02:00|192.0.2.7||GET|/0|200|5||
		2025-03-01T12:00:00+02:00|192.0.2.7||GET|/1|200|5||
		2025-03-01T05:00:01-05:00|192.0.2.7||GET|/2|200|5||
		2025-03-01T12:00:02+02:00|192.0.2.7||GET|/3|200|5||
		2025-03-01T05:01:00-05:00|192.0.2.7||GET|/4|200|5||
`)
	must.True(t, counts.Steps == 1 && got[0].OutOfOrder, "counts %+v", counts)
}

func TestReader_AStoppedReaderReturnsWhatItHas(t *testing.T) {
	t.Parallel()
	r, err := accesslog.Open(accesslog.Options{Files: []string{file(t, "access.log", logOf(shuffled(1000, 1)))}})
	must.OK(t, err)
	defer r.Close()
	for range 10 {
		must.Get(r.Next())(t)
	}
	r.Stop()
	n := 0
	for ; err == nil; n++ {
		_, err = r.Next()
	}
	if n > 3 || r.Counts().Lines > 12 {
		t.Errorf("%d requests after Stop, %d lines", n, r.Counts().Lines)
	}
}

// Standard input that neither ends nor goes on is no reason to wait, once the Reader is
// stopped.
func TestReader_AStoppedReaderDoesNotWaitForInput(t *testing.T) {
	t.Parallel()
	read, write := io.Pipe()
	r := must.Get(accesslog.Open(accesslog.Options{Files: []string{"-"}, Stdin: read}))(t)
	defer r.Close()
	go func() {
		_, _ = io.WriteString(write, combinedLine(0, "/a")+combinedLine(1, "/b"))
		_, _ = io.WriteString(write, "") // it returns when the text before was taken
		r.Stop()
	}()
	var got []accesslog.Request
	for {
		q, err := r.Next()
		if err != nil {
			break
		}
		got = append(got, q)
	}
	if len(got) != 2 || got[1].Target != "/b" {
		t.Errorf("read %s", texts(got))
	}
}

func TestReader_AFullTemporaryDirectoryIsExplained(t *testing.T) {
	t.Parallel()
	r := must.Get(accesslog.Open(accesslog.Options{Files: []string{"-"}, Stdin: strings.NewReader(logOf(shuffled(5000, 0))), TempDir: "/nonexistent", Memory: 1}))(t)
	defer r.Close()
	must.Fail(t, must.Err(r.Next()), "TMPDIR")
}
