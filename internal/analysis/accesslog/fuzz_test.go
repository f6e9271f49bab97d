package accesslog

import (
	"bufio"
	"io"
	"strings"
	"testing"
	"time"

	"heed/internal/tools/testkit/must"
)

// FuzzLine reads any line by every parser of lines. What is a request has a time that can
// be written, and the quick reading of the time agrees with that of the whole line.
func FuzzLine(f *testing.F) {
	for _, line := range []string{
		`example.org:80 2001:db8::1 - a [b] [01/Mar/2025:10:00:00 +0100] "GET /\"\x41 HTTP/1.1" 200 5 "-" "a\\"`,
		`{"ts":1740823200.5,"request":{"method":"GET","uri":"/\u00e9","headers":{"User-Agent":["a"]}},"status":200}`,
		"#Fields: date time c-ip cs-uri-stem", "2025-03-01 10:00:00 192.0.2.7 /a", "- - [", `"\x`, "#", `{"":[{}`,
	} {
		f.Add(line)
	}
	custom := must.Get(reading().compile(`%v %h %t "%r" %>s %b "%{User-Agent}i" %{%d.%m.%Y}t`))(f)
	lines := &w3c{}
	lines.directive("#Fields: date time c-ip cs-method cs-uri-stem cs-uri-query sc-status cs(User-Agent)")
	f.Fuzz(func(t *testing.T, line string) {
		if strings.ContainsAny(line, "\n") {
			return
		}
		after := &w3c{fields: lines.fields, form: undoPercent, day: "2025-03-01"}
		for _, p := range []parser{&combined{}, &jsonLines{}, &w3c{}, after, custom.fresh()} {
			var q Request
			reason := parse(p, line, &q)
			if reason != "" {
				continue
			}
			year := q.Time.Year()
			must.True(t, year >= 0 && year <= 10_000, "%T: the year %d", p, year)
			if quick, ok := p.(*combined); ok {
				at, found := quick.when(line)
				must.True(t, found && at.Equal(q.Time), "%T: the time is %s, and %s", p, q.Time, at)
			}
			s := &sorter{reader: &Reader{sources: []*source{{name: "a"}}}}
			var again Request
			must.OK(t, s.decode(appendRequest(nil, &q), &again))
			if again.Time.Equal(q.Time) && again.Target == q.Target && again.UserAgent == q.UserAgent && again.Host == q.Host && again.Bytes == q.Bytes {
				continue
			}
			t.Errorf("%T: %+v is decoded as %+v", p, q, again)
		}
	})
}

// FuzzPattern compiles any pattern and reads a line with it.
func FuzzPattern(f *testing.F) {
	f.Add(`$remote_addr [$time_local] "$request" $status`, `192.0.2.7 [01/Mar/2025:10:00:00 +0000] "GET / HTTP/1.1" 200`)
	f.Add(`%h %{%Y}t "%r"%%`, `a 2025 "GET /"%`)
	f.Add(`log_format a '$msec' ' $request_uri';`, `1 /`)
	f.Fuzz(func(t *testing.T, format, line string) {
		p, err := reading().compile(format)
		if err != nil {
			p := err.Error()
			must.True(t, strings.HasPrefix(p, "--format: "), "%q: %s", format, p)
			return
		}
		var q Request
		parse(p, line, &q)
	})
}

// FuzzWARC reads any WARC file to its end.
func FuzzWARC(f *testing.F) {
	f.Add("WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://a/robots.txt\r\nWARC-Date: 2025-03-01T10:00:00Z\r\nContent-Length: 20\r\n\r\nHTTP/1.1 200 OK\r\n\r\na\r\n\r\n")
	f.Fuzz(func(t *testing.T, s string) {
		w := &warc{in: bufio.NewReaderSize(strings.NewReader(s), 2*maxHead)}
		w.robots = func(r *Robots) error {
			must.True(t, len(r.Body) <= MaxRobots, "%d octets", len(r.Body))
			return nil
		}
		for n := 0; ; n++ {
			var q Request
			if _, err := w.next(&q); err != nil {
				return
			}
			must.Need(t, n <= len(s), "it does not end")
		}
	})
}

// FuzzLines reads lines in pieces of any size.
func FuzzLines(f *testing.F) {
	f.Add("a\r\n\nb", uint8(1))
	f.Fuzz(func(t *testing.T, s string, size uint8) {
		l := lines{in: bufio.NewReaderSize(&pieces{s, int(size)%7 + 1}, 2*block)}
		var got []string
		for {
			next, err := l.next()
			if err == io.EOF {
				break
			}
			must.OK(t, err)
			got = append(got, next.text)
		}
		want := strings.Split(s, "\n")
		if want[len(want)-1] == "" {
			want = want[:len(want)-1]
		}
		for i := range want {
			want[i] = strings.TrimSuffix(want[i], "\r")
		}
		must.True(t, strings.Join(got, "\n") == strings.Join(want, "\n") && len(got) == len(want), "%q, want %q", got, want)
	})
}

// pieces returns a few octets each time.
type pieces struct {
	s    string
	size int
}

// Read reads a piece.
func (p *pieces) Read(b []byte) (int, error) {
	if p.s == "" {
		return 0, io.EOF
	}
	n := copy(b[:min(p.size, len(b))], p.s)
	p.s = p.s[n:]
	return n, nil
}

// The times of a disordered log need a window that is neither too small nor larger than
// needed.
func TestDisorder_TheWindowIsTheLeastThatIsEnough(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		seconds []int
		want    int64
	}{
		{[]int{1, 2, 2, 3}, 0},
		{[]int{1, 3, 2, 4}, 1},
		{[]int{5, 6, 7, 1}, 3},
		{[]int{2, 1, 4, 3, 6, 5}, 1},
		{[]int{1, 9, 2, 3, 4}, 3},
	} {
		var o disorder
		for _, s := range c.seconds {
			o.add(time.Unix(int64(s), 0))
		}
		must.Equal(t, o.most, c.want, "%v", c.seconds)
	}
}
