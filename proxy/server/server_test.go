package server

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/proxy/http1"
)

// side is the Client of a connection.
type side struct {
	handle func(*Answer, *http.Request)
	unread chan error
	hello  chan bool
	silent chan bool
}

func (s *side) Handle(a *Answer, r *http.Request) { s.handle(a, r) }
func (s *side) Unread(err error)                  { s.unread <- err }
func (s *side) Hello()                            { s.hello <- true }
func (s *side) Silent()                           { s.silent <- true }

// bed is a Server on a real listener, for one connection at a time.
type bed struct {
	*side
	server *Server
	conns  chan *Conn // those that are served
	addr   string
}

func newBed(t *testing.T, handle func(*Answer, *http.Request)) *bed {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	b := &bed{
		side:   &side{handle, make(chan error, 8), make(chan bool, 8), make(chan bool, 8)},
		server: &Server{HeaderTime: time.Minute, IdleTime: time.Minute}, conns: make(chan *Conn, 64), addr: l.Addr().String(),
	}
	go testkit.Accept(l, func(c net.Conn) {
		own := b.server.NewConn(context.Background(), c, b.side, http1.Limit{Head: 4 << 10})
		b.conns <- own
		own.Serve()
	})
	t.Cleanup(func() {
		l.Close()
		b.server.Close()
	})
	return b
}

const simple = "GET /%zz HTTP/1.1\r\nHost: a.test\r\n\r\n"

// A client that leaves ends its request, whether it is watched by then or not, and so does
// one whose request had a body.
func TestServer_WhoLeavesEndsTheRequest(t *testing.T) {
	for _, request := range []string{simple, "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 2\r\n\r\nab"} {
		for _, watched := range []bool{false, true} {
			begun, ended := make(chan bool), make(chan error)
			b := newBed(t, func(a *Answer, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				begun <- true
				<-r.Context().Done()
				ended <- r.Context().Err()
			})
			c := testkit.Dial(t, b.addr)
			c.Send(request)
			<-begun
			if watched {
				(<-b.conns).awaitWatch(t)
			}
			c.Close()
			must.Equal(t, <-ended, context.Canceled)
		}
	}
}

// An end of the client's stream that comes with the request is no departure, nor is one that
// comes later, when the request is under way. Otherwise it is, and a reset always.
func TestServer_AnEndIsADepartureOnlyWhileTheRequestWaits(t *testing.T) {
	end, reset := (*testkit.Conn).CloseWrite, (*testkit.Conn).Reset
	for _, c := range []struct {
		name     string
		endTime  time.Duration
		underWay bool
		leave    func(*testkit.Conn)
		left     bool
	}{
		{"ends with the request", time.Hour, false, end, false},
		{"ends with the request, under way", time.Hour, true, end, false},
		{"ends later", 0, false, end, true},
		{"ends later, under way", 0, true, end, false},
		{"reset with the request", time.Hour, false, reset, true},
		{"reset later, under way", 0, true, reset, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			begun, goOn, left := make(chan *watch), make(chan bool), make(chan bool, 1)
			b := newBed(t, func(a *Answer, r *http.Request) {
				if c.underWay {
					a.UnderWay()
				}
				begun <- &a.conn.watch
				<-goOn
				left <- r.Context().Err() != nil
				io.WriteString(a, "ok")
			})
			b.server.EndTime, b.server.StallTime = c.endTime, time.Hour
			client := testkit.Dial(t, b.addr)
			client.Send(simple)
			w := <-begun
			c.leave(client)
			testkit.Until(t, "the watch has ended", func() bool {
				w.mu.Lock()
				defer w.mu.Unlock()
				select {
				case <-w.read:
					return true
				default: // also before there is one
					return false
				}
			})
			goOn <- true
			must.Equal(t, <-left, c.left, "left")
			if !c.left {
				must.Equal(t, string(client.Answer("GET").Body), "ok")
				client.Closed()
			}
		})
	}
}

// A request under way whose client has ended its stream does not go on for ever when nothing
// comes that could be written to it: the client may be gone.
func TestServer_AnEndedClientIsNotServedForEver(t *testing.T) {
	left := make(chan bool, 1)
	b := newBed(t, func(a *Answer, r *http.Request) {
		a.UnderWay()
		io.WriteString(a, "the first")
		_ = a.FlushError()
		<-r.Context().Done()
		left <- true
	})
	b.server.EndTime, b.server.StallTime = time.Hour, time.Millisecond
	client := testkit.Dial(t, b.addr)
	client.Send(simple)
	client.CloseWrite()
	select {
	case <-left:
	case <-time.After(testkit.Patience):
		t.Error("the request goes on")
	}
}

// awaitWatch returns when somebody reads to find out that the client leaves.
func (c *Conn) awaitWatch(t *testing.T) {
	t.Helper()
	testkit.Until(t, "the connection is watched", func() bool {
		c.watch.mu.Lock()
		defer c.watch.mu.Unlock()
		return c.watch.read != nil
	})
}

// What comes while a request is served is the next request, in whatever pieces, and the
// one who reads it for the watch does not keep it.
func TestServer_WhatComesMeanwhileIsTheNextRequest(t *testing.T) {
	begun, goOn := make(chan bool), make(chan bool)
	b := newBed(t, func(a *Answer, r *http.Request) {
		begun <- true
		<-goOn
		io.WriteString(a, r.RequestURI)
		must.True(t, r.Context().Err() == nil, "the client is taken to have left")
	})
	c := testkit.Dial(t, b.addr)
	c.Send(simple)
	<-begun
	conn := <-b.conns
	conn.awaitWatch(t)
	c.Send("GET /2 HTTP/1.1\r\nHo")
	goOn <- true
	must.Equal(t, string(c.Answer("GET").Body), "/%zz")
	c.Send("st: a.test\r\n\r\nGET /3 HTTP/1.1\r\nHost: a.test\r\n\r\n")
	for _, want := range []string{"/2", "/3"} {
		<-begun
		goOn <- true
		must.Equal(t, string(c.Answer("GET").Body), want)
	}
}

// A connection that is taken over while it is watched has all its octets, and no deadline.
func TestServer_ATakenConnectionHasAllOctets(t *testing.T) {
	begun, goOn, taken := make(chan bool), make(chan bool), make(chan *Conn)
	b := newBed(t, func(a *Answer, r *http.Request) {
		begun <- true
		<-goOn
		c, _, err := a.Hijack()
		must.True(t, err == nil, "%v", err)
		taken <- c.(*Conn)
	})
	for _, early := range []string{"", "early "} {
		c := testkit.Dial(t, b.addr)
		c.Send("CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n" + early)
		<-begun
		conn := <-b.conns
		if early == "" {
			conn.awaitWatch(t)
		}
		goOn <- true
		own := <-taken
		c.Send("late")
		rest := make([]byte, len("late"))
		_, err := io.ReadFull(own.Conn, rest)
		must.True(t, err == nil && string(own.Rest())+string(rest) == early+"late", "after %q: %q, %v", early, rest, err)
		own.Conn.Close()
	}
}

// roomConn knows how many octets its last reader has room for.
type roomConn struct {
	net.Conn
	room atomic.Int64
}

// Read implements net.Conn.
func (c *roomConn) Read(p []byte) (int, error) {
	c.room.Store(int64(len(p)))
	return c.Conn.Read(p)
}

// Between two requests a connection has no buffer after a moment, and the next one is read
// nevertheless. It is closed after IdleTime.
func TestServer_AnIdleConnectionHasNoBuffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		s := &Server{HeaderTime: time.Minute, IdleTime: time.Minute}
		waiting := &roomConn{Conn: far}
		conn := s.NewConn(t.Context(), waiting, &side{handle: func(a *Answer, r *http.Request) { io.WriteString(a, r.RequestURI) }}, http1.Limit{})
		go conn.Serve()
		c := testkit.On(t, near)
		for range 2 {
			c.Send(simple)
			must.Equal(t, string(c.Answer("GET").Body), "/%zz")
			testkit.Delay(10 * time.Second)
			synctest.Wait()
			must.Equal(t, waiting.room.Load(), 1, "octets that an idle connection has room for")
		}
		testkit.Delay(time.Minute)
		c.Closed()
	})
}

// A request that cannot be read is given to the Client with what is wrong and what could be
// read of it; a TLS hello is recognised only where the connection begins.
func TestServer_WhatCannotBeRead(t *testing.T) {
	b := newBed(t, func(a *Answer, r *http.Request) {})
	for text, want := range map[string]string{
		"GET /a HTTP/1.1\r\nHost: a.test\r\nX : y\r\n\r\n":                                "the request has a blank before the colon of the field \"X\"",
		"GET a%zz HTTP/1.1\r\nHost: a.test\r\n\r\n":                                       "the request target is neither a URL nor a path",
		"GET /a HTTP/1.1\r\nHost: a.test\r\nX: " + strings.Repeat("x", 5000) + "\r\n\r\n": "the request head is too large",
		simple + "\x16\x03\x01\r\n\r\n":                                                   "the request does not begin with a method: it contains an octet that no method has",
	} {
		c := testkit.Dial(t, b.addr)
		c.Send(text)
		var fault *http1.Fault
		err := <-b.unread
		must.True(t, errors.As(err, &fault) && err.Error() == want, "%.60q: %v", text, err)
		c.Rest()
		if conn := <-b.conns; strings.HasPrefix(text, "GET /a ") && conn.Head.Target != "/a" {
			t.Errorf("%.60q: %+v", text, conn.Head)
		}
	}
	c := testkit.Dial(t, b.addr)
	c.Send("\x16\x03")
	<-b.hello
	c.Closed()
}

// A client is silent when it leaves before it has sent anything, and not after a request.
func TestServer_WhoSendsNothingIsSilent(t *testing.T) {
	b := newBed(t, func(a *Answer, r *http.Request) {})
	testkit.Dial(t, b.addr).Close()
	<-b.silent
	c := testkit.Dial(t, b.addr)
	c.Send(simple)
	c.Answer("GET")
	c.Close()
	testkit.Until(t, "the server has stopped", b.server.Stop)
	must.True(t, len(b.silent) == 0, "a client is silent that has sent a request")
}

// An answer is framed as its client and its header allow, and nothing is invented.
func TestServer_Framing(t *testing.T) {
	answers := map[string]func(*Answer){
		"/length":  func(a *Answer) { a.Header()["Content-Length"] = []string{"2"}; io.WriteString(a, "ab") },
		"/none":    func(a *Answer) { io.WriteString(a, "ab") },
		"/empty":   func(a *Answer) { a.WriteHeader(201) },
		"/304":     func(a *Answer) { a.Header()["Content-Length"] = []string{"7"}; a.WriteHeader(304) },
		"/invalid": func(a *Answer) { a.Header()["X Y"] = []string{"1"}; a.Header()["X"] = []string{"a\x01"} },
		"/trailer": func(a *Answer) {
			a.Header()["Trailer"] = []string{"X-Sum"}
			io.WriteString(a, "ab")
			a.Header()["X-Sum"] = []string{"1"}
			a.Header()[http.TrailerPrefix+"X-More"] = []string{"2"}
		},
		"/phrase": func(a *Answer) { text := "Fine\r\nX: y"; a.SetPhrase(&text); a.WriteHeader(200) },
		"/599":    func(a *Answer) { a.WriteHeader(599) },
		"/hints":  func(a *Answer) { a.WriteHeader(103); io.WriteString(a, "ab") },
	}
	b := newBed(t, func(a *Answer, r *http.Request) {
		a.Header()["Date"] = nil
		answers[r.URL.Path](a)
	})
	for request, want := range map[string]string{
		"GET /length HTTP/1.1":   "200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nab",
		"HEAD /length HTTP/1.1":  "200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n",
		"GET /none HTTP/1.1":     "200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n2\r\nab\r\n0\r\n\r\n",
		"GET /none HTTP/1.0":     "200 OK\r\nConnection: close\r\n\r\nab",
		"HEAD /none HTTP/1.1":    "200 OK\r\nConnection: close\r\n\r\n",
		"GET /empty HTTP/1.1":    "201 Created\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
		"GET /304 HTTP/1.1":      "304 Not Modified\r\nContent-Length: 7\r\nConnection: close\r\n\r\n",
		"GET /invalid HTTP/1.1":  "200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
		"GET /trailer HTTP/1.1":  "200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\nConnection: close\r\n\r\n2\r\nab\r\n0\r\nX-More: 2\r\nX-Sum: 1\r\n\r\n",
		"GET /phrase HTTP/1.1":   "200 Fine  X: y\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
		"GET /hints HTTP/1.0":    "200 OK\r\nConnection: close\r\n\r\nab", // RFC 9110 §15.2
		"GET /599 HTTP/1.1":      "599 status code 599\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
		"OPTIONS /none HTTP/1.1": "200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n2\r\nab\r\n0\r\n\r\n",
	} {
		c := testkit.Dial(t, b.addr)
		c.Send(request + "\r\nHost: a.test\r\nConnection: close\r\n\r\n")
		must.Same(t, lines(string(c.Rest())), lines("HTTP/1.1 "+want), request)
	}
}

// lines returns the lines of an answer; the fields of its head in alphabetical order.
func lines(text string) []string {
	head, body, _ := strings.Cut(text, "\r\n\r\n")
	all := strings.Split(head, "\r\n")
	slices.Sort(all[1:])
	return append(all, body)
}

// A client that waits for 100 gets it when its body is asked for. After an answer without
// that, or before the end of the body, the connection ends, and is not read any more.
func TestServer_Bodies(t *testing.T) {
	bodies := make(chan io.Reader, 1)
	b := newBed(t, func(a *Answer, r *http.Request) {
		if r.URL.Path == "/read" {
			body, err := io.ReadAll(r.Body)
			a.Write(body)
			must.True(t, err == nil, "%v", err)
			return
		}
		bodies <- r.Body
	})
	const fields = " HTTP/1.1\r\nHost: a.test\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"
	c := testkit.Dial(t, b.addr)
	for range 2 {
		c.Send("POST /read" + fields)
		a := c.Head("POST")
		must.Need(t, a.StatusCode == 100, "%s", a.Status)
		c.Send("ab")
		if a := c.Answer("POST"); a.StatusCode != 200 || string(a.Body) != "ab" || a.Close {
			t.Errorf("%s %q", a.Status, a.Body)
		}
	}
	c.Send("POST /unread" + fields)
	a := c.Answer("POST")
	must.True(t, a.StatusCode == 200 && a.Close, "%s, close %v", a.Status, a.Close)
	c.Closed()
	n, err := (<-bodies).Read(make([]byte, 2))
	must.True(t, n == 0 && err == http.ErrBodyReadAfterClose, "%d, %v", n, err)
}

// Stop closes what is idle, and leaves what is served, whose connection closes.
func TestServer_Stop(t *testing.T) {
	begun, goOn := make(chan bool), make(chan bool)
	b := newBed(t, func(a *Answer, r *http.Request) {
		if r.URL.Path == "/slow" {
			begun <- true
			<-goOn
		}
	})
	idle, slow := testkit.Dial(t, b.addr), testkit.Dial(t, b.addr)
	idle.Send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
	a := idle.Answer("GET")
	must.True(t, a.StatusCode == 200 && !a.Close, "%s", a.Status)
	slow.Send("GET /slow HTTP/1.1\r\nHost: a.test\r\n\r\n")
	<-begun
	testkit.Until(t, "only what is served is left", func() bool {
		must.Need(t, !b.server.Stop(), "nothing is left, although a request is being served")
		b.server.mu.Lock()
		defer b.server.mu.Unlock()
		return len(b.server.conns) == 1
	})
	idle.Closed()
	goOn <- true
	a = slow.Answer("GET")
	must.True(t, a.StatusCode == 200 && a.Close, "%s, close %v", a.Status, a.Close)
	testkit.Until(t, "nothing is left", b.server.Stop)
	testkit.Dial(t, b.addr).Closed()
}

// Close ends a request under way whose client has ended its stream. Its watch has seen that
// end already, so that closing the connection is no news to it.
func TestServer_CloseEndsTheRequests(t *testing.T) {
	begun, ended := make(chan *watch), make(chan bool, 1)
	b := newBed(t, func(a *Answer, r *http.Request) {
		a.UnderWay()
		begun <- &a.conn.watch
		<-r.Context().Done()
		ended <- true
	})
	b.server.StallTime = time.Hour
	client := testkit.Dial(t, b.addr)
	client.Send(simple)
	w := <-begun
	client.CloseWrite()
	testkit.Until(t, "the end is known", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.stall != nil
	})
	b.server.Close()
	select {
	case <-ended:
	case <-time.After(testkit.Patience):
		t.Error("the request goes on")
	}
}

// halting is a connection whose first Write is cut short.
type halting struct {
	net.Conn
	halted bool
}

func (c *halting) Write(p []byte) (int, error) {
	if c.halted {
		return c.Conn.Write(p)
	}
	c.halted = true
	n, _ := c.Conn.Write(p[:9])
	return n, errors.New("halted")
}

// After a 1xx that was not written whole, nothing can follow on the connection.
func TestServer_NothingFollowsA1xxThatWasCutShort(t *testing.T) {
	for _, body := range []string{"", "Expect: 100-continue\r\nContent-Length: 2\r\n"} {
		l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
		t.Cleanup(func() { l.Close() })
		s := &Server{HeaderTime: time.Minute, IdleTime: time.Minute}
		failed := make(chan error, 1)
		go testkit.Accept(l, func(c net.Conn) {
			s.NewConn(context.Background(), &halting{Conn: c}, &side{handle: func(a *Answer, r *http.Request) {
				if body == "" {
					a.WriteHeader(http.StatusEarlyHints)
				} else {
					_ = a.SetReadDeadline(past)
					_, _ = r.Body.Read(make([]byte, 2))
				}
				a.WriteHeader(http.StatusOK)
				_, err := io.WriteString(a, "page")
				failed <- err
			}}, http1.Limit{}).Serve()
		})
		c := testkit.Dial(t, l.Addr().String())
		c.Send("GET / HTTP/1.1\r\nHost: a.test\r\n" + body + "\r\n")
		err := <-failed
		must.True(t, err != nil, "the page was written")
		must.Equal(t, string(c.Rest()), "HTTP/1.1 ", "the client")
	}
}
