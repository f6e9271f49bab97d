package h2head

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"strings"

	"golang.org/x/net/http2/hpack"

	"heed/proxy/limit"
)

// Note is what the handler has to know of a request beside what net/http hands it.
type Note struct {
	Target []byte          // as it came; of a refused request also empty
	Method []byte          // of a refused request
	Fault  string          // what is wrong with the request; empty: nothing is
	Over   *limit.Exceeded // the limit that stops the request; nil: none does
	Last   bool            // nothing more is read from the connection

	reset bool // the stream is reset for Fault: no handler gets the request
}

// noteName is the field in which a Note travels through net/http. What a client sends
// under this name is dropped. That the name cannot be guessed keeps this from ever
// mattering to a client.
var noteName = "heed-" + strings.ToLower(rand.Text())

var noteKey = http.CanonicalHeaderKey(noteName)

// field returns n as a field. It is never indexed.
func (n *Note) field() hpack.HeaderField {
	text, err := json.Marshal(n)
	if err != nil {
		panic(err) // a Note contains nothing that has no JSON
	}
	return hpack.HeaderField{Name: noteName, Value: string(text), Sensitive: true}
}

// Refused reports whether the request cannot be judged, for Fault or Over.
func (n *Note) Refused() bool { return n.Fault != "" || n.Over != nil }

// TakeNote removes the Note from a request that net/http has read from a Reader, and
// returns it; nil: there is none. The RequestURI and the URL of a request that is not
// refused become those of the target as it came.
func TakeNote(r *http.Request) *Note {
	text, ok := r.Header[noteKey]
	if !ok {
		return nil
	}
	delete(r.Header, noteKey)
	n := &Note{}
	if err := json.Unmarshal([]byte(text[0]), n); err != nil {
		return &Note{Fault: "the request cannot be read"}
	}
	if n.Refused() {
		return n
	}
	u, err := parseTarget(string(n.Target))
	if err != nil {
		return &Note{Fault: "the request cannot be read"}
	}
	r.RequestURI, r.URL = string(n.Target), u
	return n
}
