package accesslog_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heed/internal/analysis/accesslog"
	"heed/internal/audit"
	"heed/internal/audit/store"
	"heed/internal/tools/audittest"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// Each kind of log gives the fields that it states, also when its requests are sorted.
func TestReader_EachKindOfLogKeepsItsFields(t *testing.T) {
	t.Parallel()
	const own = `"id":"01a21eaa","client":"127.0.0.1:33276","user_agent":"Bot/1","method":"GET","url":"https://site.test:8443/a?b"`
	for name, c := range map[string]struct{ options, text, want string }{
		"combined":          {"", `192.0.2.1 - - [01/Nov/2026:10:00:00 +0000] "GET /a?b HTTP/1.1" 200 5 "-" "Bot/1"`, "10:00:00 GET - - /a?b 200 192.0.2.1"},
		"combined, target":  {"", `192.0.2.1 - - [01/Nov/2026:10:00:00 +0000] "GET https://site.test:8443/a?b HTTP/1.1" 200 5 "-" "Bot/1"`, "10:00:00 GET - - https://site.test:8443/a?b 200 192.0.2.1"},
		"--format":          {`$scheme $host $msec $remote_addr "$request" $status`, `https site.test:8443 1793527200.123 192.0.2.1 "GET /a?b HTTP/1.1" 200`, "10:00:00.123 GET https site.test:8443 /a?b 200 192.0.2.1"},
		"--format, port":    {`$server_port $host $msec $remote_addr "$request" $status`, `443 site.test 1793527200.123 192.0.2.1 "GET /a?b HTTP/1.1" 200`, "10:00:00.123 GET https site.test /a?b 200 192.0.2.1"},
		"ALB":               {`$type $time_iso8601 $elb $remote_addr:$port $target $a $b $c $status $d $e $bytes_sent "$request" "$http_user_agent" $rest`, `https 2026-11-01T10:00:00.123456Z app/lb/1 192.0.2.1:2817 10.0.0.1:80 0.0 0.1 0.0 200 200 34 366 "GET https://site.test:443/a?b HTTP/1.1" "Bot/1" ECDHE TLSv1.2`, "10:00:00.123456 GET https site.test:443 /a?b 200 192.0.2.1"},
		"W3C of CloudFront": {"", "#Fields: date time c-ip cs-method x-host-header cs-uri-stem cs-uri-query sc-status cs-protocol x-edge-location\n2026-11-01 10:00:00 192.0.2.1 GET site.test /a b 200 https X", "10:00:00 GET https site.test /a?b 200 192.0.2.1"},
		"W3C of IIS":        {"", "#Fields: date time cs-method cs-uri-stem cs-uri-query s-port c-ip cs-host sc-status\n2026-11-01 10:00:00 GET /a b 80 192.0.2.1 site.test 200", "10:00:00 GET http site.test /a?b 200 192.0.2.1"},
		"Logpush":           {"", `{"ClientIP":"192.0.2.1","ClientRequestHost":"site.test","ClientRequestMethod":"GET","ClientRequestURI":"/a?b","ClientRequestScheme":"http","EdgeStartTimestamp":1793527200123456789,"EdgeResponseStatus":200}`, "10:00:00.123456789 GET http site.test /a?b 200 192.0.2.1"},
		"Google":            {"", `{"httpRequest":{"requestMethod":"GET","requestUrl":"https://site.test/a?b","status":200,"remoteIp":"192.0.2.1"},"timestamp":"2026-11-01T10:00:00.5Z"}`, "10:00:00.5 GET https site.test /a?b 200 192.0.2.1"},
		"Docker":            {"", `{"log":"192.0.2.1 - - [01/Nov/2026:10:00:00 +0000] \"GET /a?b HTTP/1.1\" 200 5\n","stream":"stdout","time":"2026-11-01T10:00:00.5Z"}`, "10:00:00 GET - - /a?b 200 192.0.2.1"},
		"Docker, JSON":      {"", `{"log":"{\"ts\":1793527200.5,\"scheme\":\"http\",\"host\":\"site.test\",\"method\":\"GET\",\"uri\":\"/a?b\",\"status\":200}\n","time":"2026-11-01T10:00:01Z"}`, "10:00:00.5 GET http site.test /a?b 200 "},
		"--json-fields":     {"time=startedAt,target=http.u,status=outcome", `{"startedAt":"2026-11-01T10:00:00Z","http":{"u":"https://site.test:8443/a?b"},"outcome":404}`, "10:00:00 - https site.test:8443 /a?b 404 "},
		"heed's log":        {"", `{"time":"2026-11-01T10:00:00.123Z","msg":"decision",` + own + `,"verdict":"allow","status":200,"by":"site","outcome":"answered"}`, "10:00:00.123 GET https site.test:8443 /a?b 200 127.0.0.1"},
		"heed's refusal":    {"", `{"time":"2026-11-01T10:00:00.123Z","msg":"decision",` + own + `,"verdict":"refuse","status":403,"by":"heed","outcome":"refused-by-heed"}`, "10:00:00.123 GET https site.test:8443 /a?b 403 127.0.0.1 refused"},
		"CSV":               {"", "time,scheme,host,method,target,status\n2026-11-01T10:00:00.123456Z,https,site.test:8443,GET,\"/a?b\",200", "10:00:00.123456 GET https site.test:8443 /a?b 200 "},
		"WARC":              {"", strings.Join(pages("HTTP/2", 1), ""), "10:00:00 GET https example.org /p0 200 "},
	} {
		o := accesslog.Options{Refused: true, Format: c.options}
		if strings.Contains(c.options, "=") {
			o.Format, o.Names = "", strings.Split(c.options, ",")
		}
		for _, stdin := range []bool{false, true} { // which is sorted
			o.Files, o.Stdin = []string{testkit.Write(t, filepath.Join(t.TempDir(), "log"), c.text+"\n")}, nil
			if stdin {
				o.Files, o.Stdin = []string{"-"}, strings.NewReader(c.text+"\n")
			}
			got, counts := all(t, o)
			if len(got) != 1 || fieldsOf(got[0]) != c.want {
				t.Errorf("%s, standard input %v: %q, want %q; %+v", name, stdin, fieldsOf(append(got, accesslog.Request{})[0]), c.want, counts)
			}
		}
		if o.Refused = false; strings.HasSuffix(c.want, "refused") {
			o.Files = []string{testkit.Write(t, filepath.Join(t.TempDir(), "log"), c.text+"\n")}
			got, _ := all(t, o)
			must.True(t, len(got) == 0, "%s: a request that no site saw is one of a site's log: %+v", name, got)
		}
	}
}

func fieldsOf(q accesslog.Request) string {
	or := func(s string) string {
		if s == "" {
			return "-"
		}
		return s
	}
	text := fmt.Sprint(q.Time.UTC().Format("15:04:05.999999999"), " ", or(q.Method), " ", or(q.Scheme), " ", or(q.Host), " ", q.Target, " ", q.Status, " ", q.Client)
	if q.Refused {
		text += " refused"
	}
	return text
}

// A record is read as the requests that heed sent to sites, with their scheme and port, and those
// that heed refused when they are wanted.
func TestReader_TheRequestsOfARecord(t *testing.T) {
	t.Parallel()
	crawl := audittest.Crawl{Entries: 3000, Sites: 10}
	path := filepath.Join(t.TempDir(), "audit.db")
	must.OK(t, crawl.Write(path, store.Options{}))
	want, sent, agents := map[string]int{}, 0, map[string]bool{}
	must.OK(t, crawl.Each(func(*audit.Entry) error { return nil }, func(e *audit.Entry) error {
		if e.Host != "" && !audit.IsTunnel(e.Method, e.Target) {
			want[e.URL()]++
		}
		if o := e.Outcome; o.FromSite || o.SiteStatus != 0 || e.Method == http.MethodConnect && o.Status == http.StatusOK {
			sent++
			agents[e.UserAgent] = true
		}
		return nil
	}))
	refused := 0
	got, _ := all(t, accesslog.Options{Files: []string{path}, Refused: true})
	for _, q := range got {
		if q.Refused {
			refused++
		}
		if want[q.Scheme+"://"+q.Host+q.Target]--; strings.HasPrefix(q.Target, "/") && want[q.Scheme+"://"+q.Host+q.Target] < 0 {
			t.Errorf("%s://%s%s is not in the record", q.Scheme, q.Host, q.Target)
		}
		must.Equal(t, q.Time.Nanosecond()%int(time.Microsecond), 0, "%v", q.Time)
	}
	for url, n := range want {
		must.True(t, n <= 0, "%s is missing %d times", url, n)
	}
	must.True(t, refused != 0, "no request was refused")
	got, counts := sorted(t, accesslog.Options{Files: []string{path}})
	must.True(t, len(got) == sent && int64(len(got))+counts.Unparsed == counts.Lines, "%d requests, %d were sent; counts %+v", len(got), sent, counts)
	for _, q := range got {
		if !agents[q.UserAgent] || q.Host == "" || q.Client == "" || q.Target == "" || q.Method == "" || q.Status == 0 || q.Line == 0 {
			t.Fatalf("%s", text(q))
		}
	}
}
