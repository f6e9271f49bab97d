package accesslog_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"slices"
	"strings"
	"testing"

	"heed/internal/accesslog"
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
		if _, err := w.Write([]byte(r)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

func TestReader_RequestsOfAWARCFile(t *testing.T) {
	t.Parallel()
	for name, data := range map[string]string{"crawl.warc": strings.Join(crawl(), ""), "crawl.warc.gz": members(t, crawl())} {
		got, counts := all(t, accesslog.Options{Files: []string{file(t, name, data)}})
		check(t, got, crawled)
		if counts.Unparsed != 1 || counts.Lines != 5 || len(counts.Truncated) != 0 {
			t.Errorf("%s: counts %+v", name, counts)
		}
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
	if err != nil || damaged || !slices.Equal(got, want) {
		t.Errorf("damaged %t, %v\n%s\nwant\n%s", damaged, err, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if !accesslog.IsWARC(path) || accesslog.IsWARC(file(t, "access.log", combinedLine(0, "/"))) {
		t.Error("IsWARC is wrong")
	}
}

// A WARC file that ends within a record has those before it.
func TestReader_AWARCFileThatIsCut(t *testing.T) {
	t.Parallel()
	whole := strings.Join(crawl(), "")
	most := 0
	for cut := len("WARC/"); cut < len(whole)-4; cut += 7 {
		got, counts := all(t, accesslog.Options{Files: []string{file(t, "crawl.warc", whole[:cut])}})
		if len(got) < most-1 || len(got) > 5 {
			t.Fatalf("cut at %d: %d requests, before it %d; %+v", cut, len(got), most, counts)
		}
		most = max(most, len(got))
	}
}
