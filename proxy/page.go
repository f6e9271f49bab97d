package proxy

import (
	"net/http"
	"strconv"
	"strings"

	"heed/proxy/clientpage"
)

// ownPage is a page that the proxy answers for itself.
type ownPage struct {
	contentType string
	body        func(*clientpage.Facts) ([]byte, error)
}

// ownPages returns the pages by path. HTML replaces the text for clients that prefer it.
func (p *Proxy) ownPages(html bool) map[string]ownPage {
	always := func(make func(*clientpage.Facts) []byte) func(*clientpage.Facts) ([]byte, error) {
		return func(f *clientpage.Facts) ([]byte, error) { return make(f), nil }
	}
	pages := map[string]ownPage{
		"/":           {"text/plain; charset=utf-8", always((*clientpage.Facts).Text)},
		"/proxy.pac":  {"application/x-ns-proxy-autoconfig", always((*clientpage.Facts).PAC)},
		"/ca.pem":     {"application/x-pem-file", always(func(f *clientpage.Facts) []byte { return f.CACert })},
		"/ca.der":     {"application/x-x509-ca-cert", always((*clientpage.Facts).DER)},
		"/bundle.pem": {"application/x-pem-file", func(*clientpage.Facts) ([]byte, error) { return p.config.Bundle() }},
	}
	if html {
		pages["/"] = ownPage{"text/html; charset=utf-8", (*clientpage.Facts).HTML}
	}
	if p.config.CACert == nil {
		delete(pages, "/ca.pem")
		delete(pages, "/ca.der")
	}
	if p.config.Bundle == nil {
		delete(pages, "/bundle.pem")
	}
	return pages
}

// pageFacts returns what the pages for the client of x contain.
func (x *exchange) pageFacts(r *http.Request) (f clientpage.Facts, err error) {
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
func (x *exchange) servePage(r *http.Request) {
	p, w := x.proxy, &x.writer
	page, known := p.ownPages(strings.Contains(r.Header.Get("Accept"), "text/html"))[r.URL.Path]
	if !known || r.Method != http.MethodGet && r.Method != http.MethodHead {
		x.req.raw = r.RequestURI
		x.deny(malformed("this is a proxy: send an absolute URL (GET http://host/path), or ask for /, /ca.pem, /ca.der, /bundle.pem or /proxy.pac"))
		x.answer(r)
		return
	}
	h := w.Header()
	h.Set("Proxy-Status", p.statusName+`; details="a page of this proxy"`) // RFC 9209
	h.Set("X-Content-Type-Options", "nosniff")
	facts, err := x.pageFacts(r)
	var body []byte
	if err == nil {
		body, err = page.body(&facts)
	}
	if err != nil {
		p.config.Log.Error("a page of heed's own could not be made", "page", r.URL.Path, "error", err)
		http.Error(w, "This file could not be made; heed's log says why.", http.StatusInternalServerError)
		return
	}
	h.Set("Content-Type", page.contentType)
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
