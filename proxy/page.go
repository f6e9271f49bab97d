package proxy

import (
	"net/http"
	"strconv"
	"strings"
)

const welcome = `heed: a forward proxy that keeps robots.txt

Point a client at this address as its HTTP proxy:

  eval "$(heed env)"        in a shell, on this machine
  heed run -- CMD ARGS...   for one program

For https the client has to trust this proxy's certificate authority:

  /ca.pem       its certificate
  /bundle.pem   this machine's usual roots and that certificate, in one file
`

// page answers a request that is for the proxy itself (origin-form).
func (p *Proxy) page(x *exchange, w *responseWriter, r *http.Request) {
	file := map[string]func() ([]byte, error){
		"/":           func() ([]byte, error) { return []byte(welcome), nil },
		"/ca.pem":     p.CACert,
		"/bundle.pem": p.Bundle,
	}[r.URL.Path]
	if file == nil || r.Method != http.MethodGet && r.Method != http.MethodHead {
		x.entry.Raw = r.RequestURI
		x.refuse(malformed("this is a proxy: send an absolute URL (GET http://host/path), or ask for /, /ca.pem or /bundle.pem"))
		x.answer(w, r)
		return
	}
	body, err := file()
	if err != nil {
		p.Log.Error("a page of heed's own could not be made", "page", r.URL.Path, "error", err)
		http.Error(w, "This file could not be made; heed's log says why.", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	if strings.HasSuffix(r.URL.Path, ".pem") {
		h.Set("Content-Type", "application/x-pem-file")
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // the writer remembers its own error
	}
}
