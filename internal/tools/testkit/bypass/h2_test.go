package bypass

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// field is a header field as it goes into a HEADERS frame, legal or not.
type field struct{ name, value string }

// h2Asker speaks HTTP/2 in frames, so that what no library would send is sent.
type h2Asker struct {
	route
	conn   net.Conn
	frames *http2.Framer
	block  bytes.Buffer
	encode *hpack.Encoder
	stream uint32
}

func (a *h2Asker) close() {
	if a.conn != nil {
		a.conn.Close()
		a.conn = nil
	}
}

func (a *h2Asker) open() error {
	conn, err := a.dial()
	if err != nil {
		return err
	}
	a.conn, a.stream = conn, 1
	a.block.Reset()
	a.encode = hpack.NewEncoder(&a.block)
	a.frames = http2.NewFramer(conn, conn)
	a.frames.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if _, err := conn.Write([]byte(http2.ClientPreface)); err != nil {
		return err
	}
	if err := a.frames.WriteSettings(); err != nil {
		return err
	}
	return a.frames.WriteWindowUpdate(0, 1<<30)
}

func (a *h2Asker) ask(target, agent string) reply {
	return a.send([]field{
		{":method", "GET"}, {":scheme", "https"}, {":authority", a.name}, {":path", target}, {"user-agent", agent},
	}, "")
}

// send asks with the fields as they are, on a stream of its own.
func (a *h2Asker) send(fields []field, body string) reply {
	if a.conn == nil {
		if err := a.open(); err != nil {
			a.close()
			return reply{err: err, unasked: true}
		}
	}
	a.conn.SetDeadline(time.Now().Add(patience))
	a.block.Reset()
	for _, f := range fields {
		a.encode.WriteField(hpack.HeaderField{Name: f.name, Value: f.value})
	}
	stream := a.stream
	a.stream += 2
	err := a.frames.WriteHeaders(http2.HeadersFrameParam{
		StreamID: stream, BlockFragment: a.block.Bytes(), EndHeaders: true, EndStream: body == "",
	})
	if err == nil && body != "" {
		err = a.frames.WriteData(stream, true, []byte(body))
	}
	var text strings.Builder
	if err == nil {
		err = a.answer(stream, &text)
	}
	if err != nil {
		a.close()
	}
	return reply{text: text.String(), err: err}
}

// answer reads until the stream ends. An error ends the connection.
func (a *h2Asker) answer(stream uint32, text *strings.Builder) error {
	for {
		frame, err := a.frames.ReadFrame()
		if err != nil {
			return err
		}
		switch f := frame.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				err = a.frames.WriteSettingsAck()
			}
		case *http2.PingFrame:
			err = a.frames.WritePing(true, f.Data)
		case *http2.MetaHeadersFrame:
			for _, h := range f.Fields {
				fmt.Fprintf(text, "%s: %s\r\n", h.Name, h.Value)
			}
			if f.StreamID == stream && f.StreamEnded() {
				return nil
			}
		case *http2.DataFrame:
			text.Write(f.Data())
			if f.StreamID == stream && f.StreamEnded() {
				return nil
			}
		case *http2.RSTStreamFrame:
			if f.StreamID == stream {
				return nil
			}
		case *http2.GoAwayFrame:
			return errors.New("GOAWAY: " + f.ErrCode.String())
		}
		if err != nil {
			return err
		}
	}
}
