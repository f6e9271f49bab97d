package bypass

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"heed/internal/tools/testkit"
)

// front is a reverse proxy before a server, for sites that differ in their documents alone:
// it answers requests for these, and passes all others on in the octets in which they came.
type front struct {
	server    string
	documents map[string]map[string]string // by the name of the site and the target
}

func (f *front) start(t testing.TB) (addr string) { return testkit.RawSite(t, f.converse) }

func (f *front) converse(c net.Conn) {
	defer c.Close()
	server, err := net.Dial("tcp", f.server)
	if err != nil {
		return
	}
	defer server.Close()
	requests, answers := bufio.NewReader(c), bufio.NewReader(server)
	for {
		head, target, site := f.read(requests)
		if head == "" {
			return
		}
		if strings.HasPrefix(target, "/robots.txt") || strings.HasPrefix(target, "/.well-known/") || target == "/license.xml" {
			status, text := "200 OK", f.documents[site][target]
			if text == "" {
				status = "404 Not Found"
			}
			fmt.Fprintf(c, "HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s", status, len(text), text)
			continue
		}
		io.WriteString(server, head)
		answer, err := http.ReadResponse(answers, &http.Request{Method: "GET"})
		if err != nil || answer.Write(c) != nil || answer.Close {
			return
		}
	}
}

// read reads the head of a request without a body; empty: there is none any more.
func (f *front) read(from *bufio.Reader) (head, target, site string) {
	var text strings.Builder
	for {
		line, err := from.ReadString('\n')
		if err != nil {
			return "", "", ""
		}
		text.WriteString(line)
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch {
		case target == "":
			_, target, _ = strings.Cut(line, " ")
			target, _, _ = strings.Cut(target, " ")
		case strings.EqualFold(name, "Host"):
			site = strings.TrimSpace(value)
		case line == "\r\n":
			return text.String(), target, site
		}
	}
}
