package h2head

import (
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// This package is needed as long as net/http keeps an unfinished head beyond the time for
// heads: until its IdleTimeout ends the connection, and without an end while another
// stream is open.
func TestNetHTTP_KeepsAnUnfinishedHead(t *testing.T) {
	const headTime, idleTime, day = 15 * time.Second, 3 * time.Minute, 24 * time.Hour
	for _, busy := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			here, there := net.Pipe()
			conns := &pipeListener{make(chan net.Conn, 1), make(chan bool)}
			conns.next <- there
			free := make(chan bool)
			s := &http.Server{
				Protocols: new(http.Protocols), ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: headTime, IdleTimeout: idleTime,
				Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-free }),
			}
			s.Protocols.SetUnencryptedHTTP2(true)
			go s.Serve(conns)
			go io.Copy(io.Discard, here)
			c := &client{t: t, Conn: here, Framer: http2.NewFramer(here, here)}
			c.encoder = hpack.NewEncoder(&c.block)
			c.sent(io.WriteString(here, http2.ClientPreface))
			c.sent(0, c.WriteSettings())
			if busy {
				c.sent(0, c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: c.encode(good("/")...), EndStream: true, EndHeaders: true}))
			}
			c.sent(0, c.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: c.encode(good("/", "x", strings.Repeat("~", 1000))...), EndStream: true}))
			begun, err := time.Now(), error(nil)
			for err == nil && time.Since(begun) < day {
				time.Sleep(headTime)
				err = c.WriteContinuation(3, false, nil)
			}
			if kept := time.Since(begun); kept <= 2*headTime || busy && kept < day {
				t.Errorf("net/http kept an unfinished head for %v only, with another stream %v: it may not need a Reader any more", kept, busy)
			}
			close(free)
			here.Close()
			s.Close()
		})
	}
}

// pipeListener accepts what is sent to next.
type pipeListener struct {
	next   chan net.Conn
	closed chan bool
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.next:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	select {
	case <-l.closed:
	default:
		close(l.closed)
	}
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }
