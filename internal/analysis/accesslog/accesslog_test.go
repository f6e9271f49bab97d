package accesslog_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"heed/internal/analysis/accesslog"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// file writes a log and returns its path.
func file(t testing.TB, name, text string) string {
	t.Helper()
	return testkit.Write(t, filepath.Join(t.TempDir(), name), text)
}

// all reads every request of the logs of o.
func all(t testing.TB, o accesslog.Options) ([]accesslog.Request, accesslog.Counts) {
	t.Helper()
	r := must.Get(accesslog.Open(o))(t)
	defer r.Close()
	var requests []accesslog.Request
	for {
		q, err := r.Next()
		if err == io.EOF {
			return requests, r.Counts()
		}
		must.OK(t, err)
		requests = append(requests, q)
	}
}

// text is what a server logged of a request, in one line.
func text(q accesslog.Request) string {
	return fmt.Sprintf("%s|%s|%s|%s|%s|%d|%d|%s|%s",
		q.Time.Format(time.RFC3339Nano), q.Client, q.Host, q.Method, q.Target, q.Status, q.Bytes, q.Referrer, q.UserAgent)
}

func texts(requests []accesslog.Request) string {
	var b strings.Builder
	for _, q := range requests {
		b.WriteString(text(q) + "\n")
	}
	return b.String()
}

// check compares requests with lines of text, whose indentation is left out.
func check(t *testing.T, got []accesslog.Request, want string) {
	t.Helper()
	want = strings.TrimLeft(strings.ReplaceAll(want, "\t", ""), "\n")
	must.Equal(t, texts(got), want, "what is read")
}

// Each of these is a log as its server writes it.
var formats = []struct {
	name, log, want string
}{
	{"combined", `
192.0.2.7 - - [01/Mar/2025:10:00:00 +0100] "GET /robots.txt HTTP/1.1" 200 50 "-" "PoliteBot/1.0 (+https://example.org/bot)"
2001:db8::7 - alice [01/Mar/2025:10:00:01 +0100] "GET /a?b=%zz HTTP/2.0" 304 - "https://example.org/" "say \"hi\" \xe4\xb8\xad\t\\"
192.0.2.8 - a [b] c [01/Mar/2025:10:00:02 +0100] "CONNECT example.org:443 HTTP/1.1" 405 0 "-" "-"
192.0.2.9 - - [01/Mar/2025:10:00:02 +0100] "GET http://example.org/x y HTTP/1.0" 200 9
192.0.2.9 - - [01/Mar/2025:10:00:03 +0100] "-" 408 - "-" "-"
192.0.2.9 - - [01/Mar/2025:10:00:04 +0100] "\x16\x03\x01" 400 150 "-" "-"
`, `
		2025-03-01T10:00:00+01:00|192.0.2.7||GET|/robots.txt|200|50||PoliteBot/1.0 (+https://example.org/bot)
		2025-03-01T10:00:01+01:00|2001:db8::7||GET|/a?b=%zz|304|0|https://example.org/|say "hi" 中` + "\x00" + `\
		2025-03-01T10:00:02+01:00|192.0.2.8||CONNECT|example.org:443|405|0||
		2025-03-01T10:00:02+01:00|192.0.2.9||GET|http://example.org/x y|200|9||
		2025-03-01T10:00:03+01:00|192.0.2.9||||408|0||
		2025-03-01T10:00:04+01:00|192.0.2.9|||` + "\x16\x03\x01" + `|400|150||
`},
	{"virtual hosts", `
example.org:443 192.0.2.7 - - [01/Mar/2025:10:00:00 +0000] "GET / HTTP/1.1" 200 50 "-" "curl/8.0"
example.net:80 2001:db8::1 - - [01/Mar/2025:10:00:01 +0000] "HEAD /b HTTP/1.1" 404 0 "-" "curl/8.0"
example.net:80 crawler.example.org - joe smith [01/Mar/2025:10:00:02 +0000] "GET /c HTTP/1.1" 200 0 "-" "curl/8.0"
crawler.example.org - joe smith [01/Mar/2025:10:00:03 +0000] "GET /d HTTP/1.1" 200 0 "-" "curl/8.0"
192.0.2.7 - [01/Jan/2020:00:00:00 +0000] \" [01/Mar/2025:10:00:04 +0000] "GET /e HTTP/1.1" 200 0 "-" "curl/8.0"
`, `
		2025-03-01T10:00:00Z|192.0.2.7|example.org:443|GET|/|200|50||curl/8.0
		2025-03-01T10:00:01Z|2001:db8::1|example.net:80|HEAD|/b|404|0||curl/8.0
		2025-03-01T10:00:02Z|crawler.example.org|example.net:80|GET|/c|200|0||curl/8.0
		2025-03-01T10:00:03Z|crawler.example.org||GET|/d|200|0||curl/8.0
		2025-03-01T10:00:04Z|192.0.2.7||GET|/e|200|0||curl/8.0
`},
	{"Caddy", `
{"level":"info","ts":1740823200.25,"logger":"http.log.access","msg":"handled request","request":{"remote_ip":"192.0.2.7","remote_port":"4000","client_ip":"192.0.2.8","proto":"HTTP/2.0","method":"GET","host":"example.org","uri":"/robots.txt?x=1","headers":{"User-Agent":["PoliteBot/1.0 \"x\""],"Referer":["https://example.net/"],"Accept":["*/*","a"]},"tls":{"resumed":false}},"bytes_read":0,"user_id":"","duration":0.001,"size":50,"status":200,"resp_headers":{"Server":["Caddy"],"Content-Type":["text/plain"]}}
{"level":"info","ts":"2025-03-01T10:00:01Z","msg":"handled request","request":{"remote_ip":"2001:db8::1","method":"POST","host":"example.org:8443","uri":"/\u00e9","headers":{}},"size":0,"status":500}
`, `
		2025-03-01T10:00:00.25Z|192.0.2.8|example.org|GET|/robots.txt?x=1|200|50|https://example.net/|PoliteBot/1.0 "x"
		2025-03-01T10:00:01Z|2001:db8::1|example.org:8443|POST|/é|500|0||
`},
	{"nginx JSON", `
{"time_iso8601":"2025-03-01T10:00:00+01:00","remote_addr":"192.0.2.7","request":"GET /a HTTP/1.1","status":"200","body_bytes_sent":"12","http_referer":"","http_user_agent":"a\x22b","host":"example.org"}
{ "@timestamp" : "01/Mar/2025:10:00:01 +0100", "client": "[2001:db8::1]:55", "request_method": "GET", "request_uri": "/b", "status": 404 }
`, `
		2025-03-01T10:00:00+01:00|192.0.2.7|example.org|GET|/a|200|12||a"b
		2025-03-01T10:00:01+01:00|2001:db8::1||GET|/b|404|0||
`},
	{"Traefik", `
{"ClientAddr":"192.0.2.7:5000","ClientHost":"192.0.2.7","DownstreamContentSize":7,"DownstreamStatus":200,"RequestAddr":"example.org","RequestHost":"example.org","RequestMethod":"GET","RequestPath":"/p","StartUTC":"2025-03-01T10:00:00.5Z","request_User-Agent":"curl/8.0","time":"2025-03-01T10:00:01Z"}
`, `
		2025-03-01T10:00:01Z|192.0.2.7|example.org|GET|/p|200|7||curl/8.0
`},
	{"IIS", `
#Software: Microsoft Internet Information Services 10.0
#Version: 1.0
#Date: 2025-03-01 10:00:00
#Fields: date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip cs(User-Agent) cs(Referer) sc-status sc-substatus sc-win32-status time-taken
2025-03-01 10:00:00 192.0.2.1 GET /a.aspx id=1&b=+ 443 - 192.0.2.7 Mozilla/5.0+(compatible;+PoliteBot/1.0) - 200 0 0 15
#Date: 2025-03-02 00:00:00
#Fields: time c-ip cs-method cs-uri-stem sc-status sc-bytes cs-host
00:00:05 2001:db8::1 GET /b 404 120 example.org
`, `
		2025-03-01T10:00:00Z|192.0.2.7||GET|/a.aspx?id=1&b=+|200|0||Mozilla/5.0 (compatible; PoliteBot/1.0)
		2025-03-02T00:00:05Z|2001:db8::1|example.org|GET|/b|404|120||
`},
	{"CloudFront", `
#Version: 1.0
#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer) cs(User-Agent) cs-uri-query x-host-header
` + strings.ReplaceAll("2025-03-01_10:00:00_FRA2_500_192.0.2.7_GET_d1.cdn.example_/x_200_-_PoliteBot/1.0%20(+https://example.org)_q=1_example.org", "_", "\t") + `
`, `
		2025-03-01T10:00:00Z|192.0.2.7|example.org|GET|/x?q=1|200|500||PoliteBot/1.0 (+https://example.org)
`},
}

func TestReader_LogsOfServersAreRecognised(t *testing.T) {
	t.Parallel()
	for _, f := range formats {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			path := file(t, "access.log", strings.TrimPrefix(f.log, "\n"))
			got, counts := all(t, accesslog.Options{Files: []string{path}})
			want := strings.ReplaceAll(strings.ReplaceAll(f.want, "\t", ""), "\x00", "\t")
			must.True(t, texts(got) == strings.TrimPrefix(want, "\n"), "read\n%q\nwant\n%q", texts(got), want)
			must.Equal(t, counts.Unparsed, 0, "unparsed: %+v", counts.Problems)
		})
	}
}

// combinedLine is a line of the combined format, n seconds after an hour.
func combinedLine(n int, target string) string {
	at := time.Date(2025, 3, 1, 10, 0, 0, 0, time.UTC).Add(time.Duration(n) * time.Second)
	return fmt.Sprintf("192.0.2.7 - - [%s] \"GET %s HTTP/1.1\" 200 50 \"-\" \"PoliteBot/1.0\"\n", at.Format("02/Jan/2006:15:04:05 -0700"), target)
}

func TestReader_CustomPatternsOfBothServers(t *testing.T) {
	t.Parallel()
	const want = "2025-03-01T10:00:00Z|192.0.2.7|example.org|GET|/a b|200|50||Polite \"Bot\"\n"
	for format, line := range map[string]string{
		`$host|$remote_addr|$time_iso8601|$request_method|$request_uri|$status|$body_bytes_sent|$http_user_agent`:                                             `example.org|192.0.2.7|2025-03-01T10:00:00+00:00|GET|/a b|200|50|Polite \x22Bot\x22`,
		"log_format main escape=default '$remote_addr [$time_local] \"$request\" '\n  '$status ${body_bytes_sent} $request_time \"$http_user_agent\" $host';": `192.0.2.7 [01/Mar/2025:10:00:00 +0000] "GET /a b HTTP/1.1" 200 50 0.001 "Polite \x22Bot\x22" example.org`,
		`$msec $remote_addr $host "$request" $status $bytes_sent "$http_user_agent"`:                                                                          `1740823200.000 192.0.2.7 example.org "GET /a b HTTP/1.1" 200 50 "Polite \"Bot\""`,
		`LogFormat "%v %h %l %u %t \"%r\" %>s %O \"%{User-Agent}i\"" mine`:                                                                                    `example.org 192.0.2.7 - - [01/Mar/2025:10:00:00 +0000] "GET /a b HTTP/1.1" 200 50 "Polite \"Bot\""`,
		`%a %{Host}i %{%Y-%m-%dT%H:%M:%S%z}t "%m" "%U%q" %s %b "%{User-agent}i"`:                                                                              `192.0.2.7 example.org 2025-03-01T10:00:00+0000 "GET" "/a b" 200 50 "Polite \"Bot\""`,
		`%a %{Host}i %{%Y-%m-%dT%H:%M:%S%z}t "%m" "%U" %s %b "%{User-agent}i"`:                                                                                `192.0.2.7 example.org 2025-03-01T10:00:00+0000 "GET" "/a b" 200 50 "Polite \"Bot\""`,
		`%{usec}t %V %a "%r" %>s %B "%{User-Agent}i" 100%%`:                                                                                                   `1740823200000000 example.org 192.0.2.7 "GET /a b HTTP/1.1" 200 50 "Polite \"Bot\"" 100%`,
	} {
		path := file(t, "access.log", line+"\nsomething else\n")
		got, counts := all(t, accesslog.Options{Files: []string{path}, Format: format})
		must.True(t, texts(got) == want && counts.Unparsed == 1,
			"%s\nread %swant %scounts %+v", format, texts(got), want, counts)
	}
}

func TestReader_AWrongPatternIsExplained(t *testing.T) {
	t.Parallel()
	for format, want := range map[string]string{
		"hello":                      "has no variable",
		"$remote_addr $request":      "has no time",
		"$time_local $status":        "has no request",
		"%h %{nonsense %Q}t %r":      "the form of the time",
		"$remote_addr$request $msec": "nothing separates",
	} {
		_, err := accesslog.Open(accesslog.Options{Format: format})
		must.True(t, err != nil && strings.Contains(err.Error(), want) && strings.Contains(err.Error(), "\n"),
			"%s: %v", format, err)
	}
}

func TestReader_WhatIsNoRequestIsCountedWithItsPlace(t *testing.T) {
	t.Parallel()
	log := combinedLine(0, "/a") + "\n" + "nonsense\n" + combinedLine(1, "/b") +
		`192.0.2.7 - - [31/Feb/2025:10:00:00 +0000] "GET / HTTP/1.1" 200 5` + "\n" +
		`192.0.2.7 - - [01/Mar/2025:10:00:00 +0000] "GET / HTTP/1.1` + "\n" +
		`192.0.2.7 - - [01/Mar/2025:10:00:00 +0000] GET / HTTP/1.1 200 5` + "\n" +
		`[01/Mar/2025:10:00:00 +0000] "GET / HTTP/1.1" 200 5` + "\n" +
		`192.0.2.7 - - [01/Mar/2025:10:00:00 +0000] GET / HTTP/1.1 200 5 "-" "curl/8.0"` + "\n" +
		`192.0.2.7 - - [01/Mar/2025:10:00:00 +0000] "GET / HTTP/1.1" OK 5` + "\n" + strings.Repeat("nonsense\n", 9)
	path := file(t, "access.log", log)
	got, counts := all(t, accesslog.Options{Files: []string{path}})
	must.True(t, len(got) == 2 && counts.Lines == 19 && counts.Unparsed == 17, "%d requests, counts %+v", len(got), counts)
	var reasons []string
	for _, p := range counts.Problems {
		reasons = append(reasons, fmt.Sprintf("%s %d %s", p.Reason, p.Count, strings.ReplaceAll(strings.Join(p.Lines, " "), path, "")))
	}
	want := []string{
		"an empty line 1 :2",
		"no time in brackets 10 :3 :11 :12 :13 :14",
		"a time that is not like 25/Nov/2026:14:05:59 +0000 1 :5",
		"no request in quotes 3 :6 :7 :9",
		"no client before the time 1 :8",
		"no status after the request 1 :10",
	}
	must.Same(t, reasons, want, "reasons\n%s\nwant\n%s", strings.Join(reasons, "\n"), strings.Join(want, "\n"))
}

// compressed returns text in a coding.
func compressed(t testing.TB, coding, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser = gzip.NewWriter(&b)
	if coding == "zst" {
		var err error
		w, err = zstd.NewWriter(&b)
		must.Need(t, err == nil, "%v", err)
	}
	must.Get(io.WriteString(w, text))(t)
	must.OK(t, w.Close())
	return b.Bytes()
}

func TestReader_CompressedFilesAndWhatIsLeftOfThem(t *testing.T) {
	t.Parallel()
	var plain strings.Builder
	for i := range 20_000 {
		plain.WriteString(combinedLine(i, fmt.Sprintf("/%d", i*7919%20_011)))
	}
	for _, coding := range []string{"gz", "zst"} {
		data := compressed(t, coding, plain.String())
		twice := slices.Concat(data, compressed(t, coding, combinedLine(30_000, "/second/member")))
		for _, input := range []string{"file", "standard input"} {
			read := func(data []byte) ([]accesslog.Request, accesslog.Counts) {
				if input == "standard input" {
					return all(t, accesslog.Options{Files: []string{"-"}, Stdin: bytes.NewReader(data)})
				}
				return all(t, accesslog.Options{Files: []string{file(t, "access.log."+coding, string(data))}})
			}
			if got, counts := read(twice); len(got) != 20_001 || counts.Unparsed+int64(len(counts.Truncated)) != 0 {
				t.Errorf("%s, %s: %d requests, %+v", coding, input, len(got), counts)
			}
			got, counts := read(data[:len(data)/2])
			if len(got) < 5000 || len(got) > 15_000 || len(counts.Truncated) != 1 || counts.Lines != int64(len(got))+counts.Unparsed || counts.Unparsed > 1 {
				t.Errorf("%s, %s, cut: %d requests, %+v", coding, input, len(got), counts)
			}
		}
	}
}

func TestReader_FilesThatAreNoLogsAreExplained(t *testing.T) {
	t.Parallel()
	for name, data := range map[string]string{"xz": "\xfd7zXZ\x00rest", "zip": "PK\x03\x04rest", "UTF-16": "\xff\xfea\x00", "a directory": ""} {
		path := file(t, "access.log", data)
		if name == "a directory" {
			path = filepath.Dir(path)
		}
		r, err := accesslog.Open(accesslog.Options{Files: []string{path}})
		if err == nil {
			_, err = r.Next()
			r.Close()
		}
		if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := accesslog.Open(accesslog.Options{Files: []string{"/nonexistent/access.log"}})
	must.True(t, err != nil && strings.Contains(err.Error(), "/nonexistent/access.log"), "%v", err)
}
