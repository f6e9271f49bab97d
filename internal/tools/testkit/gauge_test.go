package testkit

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"heed/internal/tools/testkit/must"
)

// A gauge records when a request arrived at its machine, not when it was read: a head
// that is read late has the time at which it came.
func TestGauge_RecordsWhenAHeadArrived(t *testing.T) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	client := Dial(t, l.Addr().String())
	c := must.Get(stampedListener{l}.Accept())(t)
	defer c.Close()
	// The kernel begins to note arrivals a moment after the first socket asked for
	// it: what comes before that has the time at which it is read.
	before, noted := time.Now(), time.Time{}
	Until(t, "an arrival before the read", func() bool {
		client.Send("early")
		Delay(5 * time.Millisecond) // the reader is late
		read := time.Now()
		must.Get(io.ReadFull(c, make([]byte, 5)))(t)
		noted = c.(*stampedConn).arrived()
		return noted.Before(read)
	})
	must.True(t, !noted.Before(before), "what was sent at %v or later is reported to have arrived at %v", before, noted)
	client.Close()
	n, err := c.Read(make([]byte, 5))
	must.True(t, n == 0 && err == io.EOF, "at the end Read = %d, %v", n, err)
}

// Requests by all protocols are in the book, each with the site it is for.
func TestGauge_KeepsABookOfStarts(t *testing.T) {
	g := NewGauge(t, GaugeOptions{Hosts: []string{"a.test", "b.test"}, Robots: "User-agent: *\n"})
	client := &http.Client{Transport: &http.Transport{
		DialContext:     dialMapped(&net.Dialer{Timeout: Patience}, g.ports),
		TLSClientConfig: &tls.Config{RootCAs: g.CA.Pool()}, ForceAttemptHTTP2: true,
	}}
	defer client.CloseIdleConnections()
	for _, address := range []string{"http://a.test/robots.txt", "http://a.test/1", "http://a.test/2", "https://b.test/3"} {
		resp := must.Get(client.Get(address))(t)
		resp.Body.Close()
	}
	pages := Pages(g.Starts(), "http://a.test")
	must.True(t, len(pages) == 2 && pages[0].Target == "/1" && pages[1].Target == "/2" && len(GapsOf(pages)) == 1,
		"of http://a.test the book has %+v", pages)
	secure := g.Await(t, 1, func(s Arrival) bool { return s.Scheme == "https" })
	must.True(t, len(secure) == 1 && secure[0].Host == "b.test" && secure[0].Proto == "HTTP/2.0",
		"of https the book has %+v", secure)
}
