package proxy

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"

	"heed/proxy/clientpage"
)

// ownPage returns the page that the proxy answers for itself at a path, as HTML for clients that
// prefer that to text. Without a contentType there is none.
func (p *Proxy) ownPage(path string, html bool, f *clientpage.Facts) (contentType string, body []byte, err error) {
	switch {
	case path == "/" && html:
		body, err = f.HTML()
		return "text/html; charset=utf-8", body, err
	case path == "/":
		return "text/plain; charset=utf-8", f.Text(), nil
	case path == "/proxy.pac":
		return "application/x-ns-proxy-autoconfig", f.PAC(), nil
	case path == "/ca.pem" && p.config.CACert != nil:
		return "application/x-pem-file", f.CACert, nil
	case path == "/ca.der" && p.config.CACert != nil:
		return "application/x-x509-ca-cert", f.DER(), nil
	case path == "/bundle.pem" && p.config.Bundle != nil:
		body, err = p.config.Bundle()
		return "application/x-pem-file", body, err
	}
	return "", nil, nil
}

// pageFacts returns what the pages for the client of x contain.
func (x *delivery) pageFacts(r *http.Request) (f clientpage.Facts, err error) {
	c := &x.proxy.config
	f.Addr = clientpage.AddrOf(r.Host, x.req.client.Listener)
	if c.Contact != nil {
		f.Contact = c.Contact()
	}
	if c.CACert != nil {
		f.CACert, err = c.CACert()
	}
	return f, err
}

// servePage answers a request that is for the proxy itself (origin-form), whatever its
// Host field names.
func (x *delivery) servePage(r *http.Request) {
	p, w := x.proxy, &x.writer
	facts, err := x.pageFacts(r)
	contentType, body, failed := p.ownPage(r.URL.Path, strings.Contains(r.Header.Get("Accept"), "text/html"), &facts)
	if contentType == "" || r.Method != http.MethodGet && r.Method != http.MethodHead {
		x.req.raw = r.RequestURI
		x.deny(malformed("this is a proxy: send an absolute URL (GET http://host/path), or ask for /, /ca.pem, /ca.der, /bundle.pem or /proxy.pac"))
		x.answer(r)
		return
	}
	h := w.Header()
	h.Set("Proxy-Status", p.statusName+`; details="a page of this proxy"`) // RFC 9209
	h.Set("X-Content-Type-Options", "nosniff")
	if err = cmp.Or(err, failed); err != nil {
		p.config.Log.Error("a page of heed's own could not be made", "page", r.URL.Path, "error", err)
		http.Error(w, "This file could not be made; heed's log says why.", http.StatusInternalServerError)
		return
	}
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "no-store") // the CA can change
	if r.URL.Path == "/" {
		h.Set("Vary", "Accept")
		h.Set("Content-Security-Policy", clientpage.ContentSecurityPolicy)
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // the writer remembers its own error
	}
}
