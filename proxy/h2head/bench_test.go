package h2head

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"testing"

	"heed/internal/tools/testkit/must"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// browser are the fields of a browser's request, as a rule.
var browser = []string{
	":method", "GET", ":authority", "site.test", ":scheme", "https", ":path", "/page",
	"sec-ch-ua", `"Chromium";v="140", "Not=A?Brand";v="24"`, "sec-ch-ua-mobile", "?0", "sec-ch-ua-platform", `"Linux"`,
	"user-agent", "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36",
	"accept", "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8", "sec-fetch-site", "none",
	"sec-fetch-mode", "navigate", "sec-fetch-user", "?1", "sec-fetch-dest", "document", "accept-encoding", "gzip, deflate, br, zstd",
	"accept-language", "en-GB,en;q=0.9", "cookie", "session=0123456789abcdef0123456789abcdef; theme=dark",
}

// tape is a connection from which records come, the first ones once and the last again
// and again.
type tape struct {
	net.Conn
	records [][]byte
	at      int
}

func (c *tape) Read(p []byte) (int, error) {
	if c.at == len(c.records) {
		c.at = len(c.records) / 2
	}
	c.at++
	return copy(p, c.records[c.at-1]), nil
}

// BenchmarkReader is what a request costs: a library's, which has few fields, and a
// browser's. The connection is warm: only the path is new to HPACK's tables.
func BenchmarkReader(b *testing.B) {
	for name, fields := range map[string][]string{"library": append(browser[:8:8], "user-agent", "BenchBot/1.0 (+https://bench.example/)", "accept-encoding", "gzip"), "browser": browser} {
		b.Run(name, func(b *testing.B) {
			var block bytes.Buffer
			connection := &tape{records: [][]byte{[]byte(http2.ClientPreface)}}
			encoder := hpack.NewEncoder(&block)
			for i := range 100 {
				block.Reset()
				for f := 0; f < len(fields); f += 2 {
					hf := hpack.HeaderField{Name: fields[f], Value: fields[f+1]}
					if hf.Name == ":path" {
						hf.Value, hf.Sensitive = fmt.Sprintf("/page/%d/of-some-length?with=query", i), true
					}
					_ = encoder.WriteField(hf)
				}
				var record bytes.Buffer
				_ = http2.NewFramer(&record, nil).WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndStream: true, EndHeaders: true})
				connection.records = append(connection.records, record.Bytes())
			}
			r := NewReader(connection, testLimit(128<<10), nil)
			must.Get(io.ReadFull(r, make([]byte, preface)))(b)
			b.ReportAllocs()
			payload := make([]byte, 16<<10)
			var header [frameHeader]byte
			for b.Loop() {
				r.newest = 0 // a request, not trailers
				r.streams.end(1, serverEnded)
				must.Get(io.ReadFull(r, header[:]))(b)
				must.Get(io.ReadFull(r, payload[:parseFrame(header[:]).length]))(b)
			}
		})
	}
}
