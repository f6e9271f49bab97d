package proxy

import (
	"net/http"
	"strconv"
	"strings"
)

// welcome is the page for browsers; ADDR is replaced by the proxy's address.
const welcome = `heed: a forward proxy that keeps robots.txt

Point a client at this address as its HTTP proxy:

  eval "$(heed env)"        in a shell, on this machine
  heed run -- CMD ARGS...   for one program, trust included

For https the client has to trust this proxy's certificate authority:

  http://ADDR/ca.pem       its certificate
  http://ADDR/bundle.pem   this machine's usual roots and that certificate, in one file

What makes a client trust it (FILE is where you saved ca.pem, BUNDLE bundle.pem):

  this machine      heed ca install     the system's, the browsers' and Java's stores
  curl              curl --cacert BUNDLE, or CURL_CA_BUNDLE=BUNDLE
  wget              wget --ca-certificate=BUNDLE
  git               GIT_SSL_CAINFO=BUNDLE, or git config http.sslCAInfo BUNDLE
  Python requests   REQUESTS_CA_BUNDLE=BUNDLE, or verify="BUNDLE"
  Python urllib     SSL_CERT_FILE=BUNDLE; httpx and aiohttp take it, too
  Node.js           NODE_EXTRA_CA_CERTS=FILE
  Go                SSL_CERT_FILE=BUNDLE (on Linux)
  Java              keytool -importcert -cacerts -alias heed -file FILE
  Ruby, Perl        SSL_CERT_FILE=BUNDLE, PERL_LWP_SSL_CA_FILE=BUNDLE
  Rust, .NET, PHP   SSL_CERT_FILE=BUNDLE where they use OpenSSL or the system's store
  Chromium          import FILE under Certificates in its settings (Authorities)
  Firefox           import FILE under Certificates in its settings, or
                    security.enterprise_roots.enabled
  containers        copy FILE into the image, then update-ca-certificates

A client that insists on one certificate of its own ("pinning") cannot be
intercepted: its hosts are named in proxy.toml with https = "host-only".
`

// servePage answers a request that is for the proxy itself (origin-form).
func (x *exchange) servePage(r *http.Request) {
	p, w := x.proxy, &x.writer
	file := map[string]func() ([]byte, error){
		"/":           func() ([]byte, error) { return []byte(strings.ReplaceAll(welcome, "ADDR", x.req.client.Listener)), nil },
		"/ca.pem":     p.config.CACert,
		"/bundle.pem": p.config.Bundle,
	}[r.URL.Path]
	if file == nil || r.Method != http.MethodGet && r.Method != http.MethodHead {
		x.req.raw = r.RequestURI
		x.deny(malformed("this is a proxy: send an absolute URL (GET http://host/path), or ask for /, /ca.pem or /bundle.pem"))
		x.answer(r)
		return
	}
	w.Header().Set("Proxy-Status", p.statusName+`; details="a page of this proxy"`) // RFC 9209
	body, err := file()
	if err != nil {
		p.config.Log.Error("a page of heed's own could not be made", "page", r.URL.Path, "error", err)
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
