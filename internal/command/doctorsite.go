package command

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"heed/internal/ca"
)

// The pages of the doctor's site. What lies below them answers alike, for git.
const (
	allowedPath = "/allowed"
	refusedPath = "/refused"
)

// doctorSite is a site on a loopback address, over http and https, that serves
// any host and remembers what it was asked for. Its certificates are signed by
// an authority that lives as long as it does.
type doctorSite struct {
	authority *ca.Authority
	http      net.Listener
	https     net.Listener
	server    *http.Server

	mu   sync.Mutex
	hits []string // scheme://host/path
}

// openDoctorSite serves; dir, which it makes, takes the authority.
func openDoctorSite(dir string, now func() time.Time) (*doctorSite, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	authority, err := ca.Open(dir, now)
	if err != nil {
		return nil, err
	}
	s := &doctorSite{authority: authority}
	s.server = &http.Server{Handler: s, ReadHeaderTimeout: doctorPatience, ErrorLog: log.New(io.Discard, "", 0)}
	if s.http, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	if s.https, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, errors.Join(err, s.http.Close())
	}
	secure := tls.NewListener(s.https, &tls.Config{GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		return authority.Leaf(strings.ToLower(hello.ServerName))
	}})
	go s.serve(s.http)
	go s.serve(secure)
	return s, nil
}

// serve ends when the site is closed; until then a listener on loopback does not fail.
func (s *doctorSite) serve(l net.Listener) { _ = s.server.Serve(l) }

func (s *doctorSite) close() { _ = s.server.Close() }

// ServeHTTP answers every host alike.
func (s *doctorSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	s.mu.Lock()
	s.hits = append(s.hits, scheme+"://"+r.Host+r.URL.Path)
	s.mu.Unlock()
	switch {
	case r.URL.Path == "/robots.txt":
		fmt.Fprint(w, "User-agent: *\nDisallow: "+refusedPath+"\n")
	case strings.HasSuffix(r.URL.Path, "/info/refs"):
		fmt.Fprint(w, strings.Repeat("0123456789", 4)+"\trefs/heads/main\n")
	default:
		fmt.Fprintln(w, "a page of heed doctor")
	}
}

// asked reports whether a page, or what lies below it, was asked for.
func (s *doctorSite) asked(scheme, host, path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.hits, func(hit string) bool { return strings.HasPrefix(hit, scheme+"://"+host+path) })
}

// config is the proxy.toml of a heed that finds the site under the hosts of the
// patients and trusts its authority.
func (s *doctorSite) config(patients []patient) []byte {
	var text bytes.Buffer
	fmt.Fprintf(&text, "[access]\nprivate_destinations = \"allow\"\n[upstream]\nca_file = %q\n[upstream.resolve]\n", s.authority.CertPath())
	for i := range patients {
		fmt.Fprintf(&text, "\"%s:80\" = %q\n\"%[1]s:443\" = %[3]q\n", patients[i].host(), s.http.Addr(), s.https.Addr())
	}
	return text.Bytes()
}
