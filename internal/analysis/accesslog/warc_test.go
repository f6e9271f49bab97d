package accesslog_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"heed/internal/analysis/accesslog"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// warcRecord is a record of a WARC file.
func warcRecord(header, block string) string {
	return fmt.Sprintf("WARC/1.1\r\n%s\r\nContent-Length: %d\r\n\r\n%s\r\n\r\n", strings.ReplaceAll(strings.TrimSpace(header), "\n", "\r\n"), len(block), block)
}

// crawl is a WARC file as crawlers write it: request and response in both orders, a
// robots.txt in chunks, one that is missing, a response without a request, a revisit, and
// records of DNS and metadata.
func crawl() []string {
	return []string{
		warcRecord("WARC-Type: warcinfo\nWARC-Record-ID: <urn:uuid:0>\nWARC-Date: 2025-03-01T10:00:00Z", "software: crawler\r\nhttp-header-user-agent: LabBot/2.0\r\n"),
		warcRecord("WARC-Type: response\nWARC-Record-ID: <urn:uuid:d>\nWARC-Target-URI: dns:example.org\nWARC-Date: 2025-03-01T10:00:00Z", "example.org. A 192.0.2.1"),
		warcRecord("WARC-Type: request\nWARC-Record-ID: <urn:uuid:1>\nWARC-Target-URI: https://example.org/robots.txt\nWARC-Date: 2025-03-01T10:00:01Z", "GET /robots.txt HTTP/1.1\r\nHost: example.org\r\nUser-Agent: LabBot/2.0 (+https://example.net)\r\n\r\n"),
		warcRecord("WARC-Type: response\nWARC-Record-ID: <urn:uuid:2>\nWARC-Concurrent-To: <urn:uuid:1>\nWARC-Target-URI: https://example.org/robots.txt\nWARC-Date: 2025-03-01T10:00:01Z", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nf\r\nUser-agent: *\r\n\r\nc\r\nDisallow: /x\r\n0\r\n\r\n"),
		warcRecord("WARC-Type: response\nWARC-Record-ID: <urn:uuid:3>\nWARC-Target-URI: <https://example.org/a?b>\nWARC-Date: 2025-03-01T10:00:02.5Z", "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\ngone"),
		warcRecord("WARC-Type: request\nWARC-Record-ID: <urn:uuid:4>\nWARC-Concurrent-To: <urn:uuid:3>\nWARC-Target-URI: <https://example.org/a?b>\nWARC-Date: 2025-03-01T10:00:02.5Z", "GET /a?b HTTP/1.1\r\nHost: example.org\r\nReferer: https://example.org/\r\nUser-Agent: LabBot/2.0\r\n\r\n"),
		warcRecord("WARC-Type: response\nWARC-Record-ID: <urn:uuid:5>\nWARC-Target-URI: http://example.net:80/robots.txt\nWARC-Date: 2025-03-01T10:00:03Z", "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"),
		warcRecord("WARC-Type: revisit\nWARC-Record-ID: <urn:uuid:6>\nWARC-Target-URI: https://example.org/same\nWARC-Date: 2025-03-01T10:00:04Z", "HTTP/1.1 200 OK\r\n\r\n"),
		warcRecord("WARC-Type: metadata\nWARC-Record-ID: <urn:uuid:7>\nWARC-Target-URI: https://example.org/a?b\nWARC-Date: 2025-03-01T10:00:05Z", "via: x"),
		warcRecord("WARC-Type: request\nWARC-Record-ID: <urn:uuid:8>\nWARC-Target-URI: https://example.org/late\nWARC-Date: yesterday", "GET /late HTTP/1.1\r\n\r\n"),
	}
}

const crawled = `
	2025-03-01T10:00:01Z||example.org|GET|/robots.txt|200|42||LabBot/2.0 (+https://example.net)
	2025-03-01T10:00:02.5Z||example.org|GET|/a?b|404|4|https://example.org/|LabBot/2.0
	2025-03-01T10:00:03Z||example.net:80|GET|/robots.txt|503|0||LabBot/2.0
	2025-03-01T10:00:04Z||example.org|GET|/same|200|0||LabBot/2.0
`

// A WARC file is compressed record by record.
func members(t *testing.T, records []string) string {
	t.Helper()
	var b bytes.Buffer
	for _, r := range records {
		w := gzip.NewWriter(&b)
		must.Get(w.Write([]byte(r)))(t)
		must.OK(t, w.Close())
	}
	return b.String()
}

func TestReader_RequestsOfAWARCFile(t *testing.T) {
	t.Parallel()
	for name, data := range map[string]string{"crawl.warc": strings.Join(crawl(), ""), "crawl.warc.gz": members(t, crawl())} {
		got, counts := all(t, accesslog.Options{Files: []string{file(t, name, data)}})
		check(t, got, crawled)
		must.True(t, counts.Unparsed == 1 && counts.Lines == 5 && len(counts.Truncated) == 0, "%s: counts %+v", name, counts)
	}
}

func TestReadRobots_TheAnswersOfAWARCFile(t *testing.T) {
	t.Parallel()
	path := file(t, "crawl.warc.gz", members(t, crawl()))
	var got []string
	damaged, err := accesslog.ReadRobots(path, func(r *accesslog.Robots) error {
		got = append(got, fmt.Sprintf("%s %s %d %q %v", r.Site, r.Time.Format("15:04:05"), r.Status, r.Body, r.Err))
		return nil
	})
	want := []string{`example.org 10:00:01 200 "User-agent: *\r\nDisallow: /x" <nil>`, `example.net 10:00:03 503 "" <nil>`}
	must.True(t, err == nil && !damaged && slices.Equal(got, want),
		"damaged %t, %v\n%s\nwant\n%s", damaged, err, strings.Join(got, "\n"), strings.Join(want, "\n"))
	must.True(t, accesslog.IsWARC(path) && !accesslog.IsWARC(file(t, "access.log", combinedLine(0, "/"))), "IsWARC is wrong")
}

// A WARC file that ends within a record has those before it.
func TestReader_AWARCFileThatIsCut(t *testing.T) {
	t.Parallel()
	whole := strings.Join(crawl(), "")
	most := 0
	for cut := len("WARC/"); cut < len(whole)-4; cut += 7 {
		got, counts := all(t, accesslog.Options{Files: []string{file(t, "crawl.warc", whole[:cut])}})
		must.Need(t, len(got) >= most-1 && len(got) <= 5,
			"cut at %d: %d requests, before it %d; %+v", cut, len(got), most, counts)
		most = max(most, len(got))
	}
}

// pages is a WARC file of pages with a request and a response each, whose status lines have a
// version.
func pages(version string, n int) (records []string) {
	for i := range n {
		date := fmt.Sprintf("WARC-Target-URI: https://example.org/p%d\nWARC-Date: 2025-03-01T10:00:%02dZ", i, i)
		records = append(records,
			warcRecord(fmt.Sprintf("WARC-Type: request\nWARC-Record-ID: <urn:uuid:q%d>\n", i)+date, fmt.Sprintf("GET /p%d HTTP/1.1\r\nHost: example.org\r\nUser-Agent: LabBot/2.0\r\n\r\n", i)),
			warcRecord(fmt.Sprintf("WARC-Type: response\nWARC-Record-ID: <urn:uuid:r%d>\nWARC-Concurrent-To: <urn:uuid:q%d>\n", i, i)+date, version+" 200\r\nContent-Length: 4\r\n\r\npage"))
	}
	return records
}

// Crawlers that speak HTTP/2 write its name into status lines, and a record that is damaged, or
// whose length is wrong, costs that record alone: it is counted, and the others are read.
func TestReader_DamageOfAWARCRecordCostsThatRecord(t *testing.T) {
	t.Parallel()
	wrong := func(records []string, by int) string { // the length of the fourth record
		at := strings.Index(records[3], "Content-Length: ") + len("Content-Length: ")
		n, _ := strconv.Atoi(records[3][at : at+2])
		records[3] = records[3][:at] + strconv.Itoa(n+by) + records[3][at+2:]
		return strings.Join(records, "")
	}
	for name, c := range map[string]struct {
		file     string
		requests int
		answered int // with a status
		reasons  string
	}{
		"HTTP/2":             {strings.Join(pages("HTTP/2", 4), ""), 4, 4, ""},
		"HTTP/3":             {strings.Join(pages("HTTP/3", 4), ""), 4, 4, ""},
		"one byte short":     {wrong(pages("HTTP/1.1", 4), -1), 4, 4, "Content-Length is wrong"},
		"far too long":       {wrong(pages("HTTP/1.1", 4), 50), 4, 4, "Content-Length is wrong"},
		"text in between":    {strings.Join(slices.Insert(pages("HTTP/1.1", 4), 4, "what is this?\r\n\r\n"), ""), 4, 4, "Content-Length is wrong"},
		"a damaged member":   {damagedMember(t, pages("HTTP/1.1", 4)), 4, 3, "a damaged WARC record"},
		"a torn last record": {strings.TrimSuffix(strings.Join(pages("HTTP/1.1", 4), ""), "age\r\n\r\n"), 4, 4, ""},
	} {
		got, counts := sorted(t, accesslog.Options{Files: []string{testkit.Write(t, filepath.Join(t.TempDir(), "crawl.warc"), c.file)}})
		answered := 0
		for _, q := range got {
			must.True(t, q.Scheme == "https" && q.Host == "example.org", "%s: %+v", name, q)
			if q.Status == 200 {
				answered++
			}
		}
		reasons := ""
		for _, p := range counts.Problems {
			reasons += p.Reason
		}
		if len(got) != c.requests || answered != c.answered || !strings.Contains(reasons, c.reasons) || c.reasons == "" && reasons != "" {
			t.Errorf("%s: %d requests, %d answered, %q, %v", name, len(got), answered, reasons, counts.Truncated)
		}
	}
}

// damagedMember is a gzip file whose fourth member is damaged.
func damagedMember(t *testing.T, records []string) string {
	before, bad, after := members(t, records[:3]), []byte(members(t, records[3:4])), members(t, records[4:])
	for i := len(bad) / 2; i < len(bad)/2+12; i++ {
		bad[i] ^= 0xff
	}
	return before + string(bad) + after
}

// A robots.txt in a record whose length is wrong is not one that can be relied on.
func TestRobots_OfADamagedWARCRecordHaveAnError(t *testing.T) {
	t.Parallel()
	robots := warcRecord("WARC-Type: response\nWARC-Record-ID: <urn:uuid:1>\nWARC-Target-URI: https://example.org/robots.txt\nWARC-Date: 2025-03-01T10:00:01Z",
		"HTTP/1.1 200 OK\r\n\r\nUser-agent: *\nDisallow: /private")
	at := strings.Index(robots, "Content-Length: ") + len("Content-Length: ")
	n, _ := strconv.Atoi(robots[at : at+2])
	short := robots[:at] + strconv.Itoa(n-7) + robots[at+2:]
	for text, bad := range map[string]bool{robots: false, short: true} {
		path := testkit.Write(t, filepath.Join(t.TempDir(), "crawl.warc"), text+pages("HTTP/2", 1)[0])
		found := 0
		damaged, err := accesslog.ReadRobots(path, func(r *accesslog.Robots) error {
			if found++; (r.Err != nil) != bad {
				t.Errorf("%q: %v", r.Body, r.Err)
			}
			return nil
		})
		must.True(t, err == nil && damaged == bad && found == 1, "%v, %v, %d found", damaged, err, found)
	}
}
