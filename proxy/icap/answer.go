package icap

import (
	"io"
	"net/http"
	"strconv"
	"time"

	"heed/proxy/http1"
)

// Service describes the service to its clients.
type Service struct {
	Name        string // of the server
	Tag         string // changes when decisions may: at most 30 letters, digits and hyphens
	Connections int    // that one client may have
	TTL         int    // seconds after which it asks again
	Preview     int    // octets of the body of an answer that it sends before it is asked for more
}

// Writer writes the answers on one connection.
type Writer struct {
	HTTP     http1.Writer
	Service  Service
	Decision string // the value of the field of that name; empty: there is none
}

// DecisionField is the field of ICAP in which a client hands the Decision of an answer to REQMOD
// back with RESPMOD.
const DecisionField = "Heed-Decision"

// head returns the head of an answer to q without its last line. text follows the phrase, and has
// no control characters.
func (w *Writer) head(q *Request, status int, text string) []byte {
	b := append(strconv.AppendInt([]byte("ICAP/1.0 "), int64(status), 10), ' ')
	if b = append(b, http.StatusText(status)...); text != "" {
		b = append(append(b, ": "...), text...)
	}
	b = append(append(append(b, "\r\nISTag: \""...), w.Service.Tag...), "\"\r\n"...)
	if w.Decision != "" {
		b = append(append(append(b, DecisionField+": "...), w.Decision...), "\r\n"...)
	}
	if q.Close {
		b = append(b, "Connection: close\r\n"...)
	}
	return b
}

// Status writes an answer without a message: 204, for the request as it came, and errors. text
// says what is wrong.
func (w *Writer) Status(q *Request, status int, text string) error {
	b := w.head(q, status, text)
	if status != http.StatusNoContent {
		b = append(b, "Encapsulated: null-body=0\r\n"...)
	}
	w.HTTP.BeginOther(append(b, "\r\n"...), false)
	return w.HTTP.End(nil)
}

// Options answers OPTIONS.
func (w *Writer) Options(q *Request) error {
	b := w.head(q, http.StatusOK, "")
	b = append(append(append(b, "Methods: "+q.Service+"\r\nService: "...), w.Service.Name...), "\r\nMax-Connections: "...)
	b = append(strconv.AppendInt(b, int64(w.Service.Connections), 10), "\r\nOptions-TTL: "...)
	b = append(strconv.AppendInt(b, int64(w.Service.TTL), 10), "\r\nAllow: 204\r\nPreview: "...)
	preview := 0 // nothing of a request is judged by its body
	if q.Service == Respmod {
		preview = w.Service.Preview
	}
	b = append(strconv.AppendInt(b, int64(preview), 10), "\r\nTransfer-Preview: *\r\nEncapsulated: null-body=0\r\n\r\n"...)
	w.HTTP.BeginOther(b, false)
	return w.HTTP.End(nil)
}

// begin begins an answer with an encapsulated message, of which head is the head.
func (w *Writer) begin(q *Request, kind string, head []byte, body bool) {
	b := append(w.head(q, http.StatusOK, ""), "Encapsulated: "+kind+"-hdr=0, "...)
	if body {
		b = append(append(b, kind...), "-body="...)
	} else {
		b = append(b, "null-body="...)
	}
	b = append(strconv.AppendInt(b, int64(len(head)), 10), "\r\n\r\n"...)
	w.HTTP.BeginOther(append(b, head...), body)
}

// Same answers q with its message as it came. body has what follows its head, where q has a
// Body.
func (w *Writer) Same(q *Request, body io.Reader) error {
	kind := "req"
	if q.Method == Respmod {
		kind = "res"
	}
	if w.begin(q, kind, q.Section, q.Body); q.Body {
		if _, err := io.Copy(&w.HTTP, body); err != nil {
			w.HTTP.Release()
			return err
		}
	}
	return w.HTTP.End(nil)
}

// endDelay is the time between the body of an answer to REQMOD and the last chunk. Squid 5.7 treats
// a body that arrives together with its last chunk as truncated, and closes the client's connection.
const endDelay = 20 * time.Millisecond

// Response answers q with an HTTP answer for its client in place of the request, or of its answer.
// For REQMOD it returns endDelay after the body was written.
func (w *Writer) Response(q *Request, status int, header http.Header, body []byte) error {
	m := http1.Message{Status: status, Phrase: http.StatusText(status), Header: header, Length: int64(len(body)), Framing: http1.Sized}
	if !http1.HasBody(q.HTTP.Method, status) {
		m.Framing, m.Length, body = http1.NoBody, -1, nil
	}
	head, err := m.Append(nil)
	if err != nil {
		return err
	}
	if w.begin(q, "res", head, len(body) > 0); len(body) > 0 {
		if _, err := w.HTTP.Write(body); err != nil {
			return err
		}
		if q.Method == Reqmod && w.HTTP.Flush() == nil {
			time.Sleep(endDelay)
		}
	}
	return w.HTTP.End(nil)
}
