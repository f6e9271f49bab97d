package ca

import (
	"crypto/tls"
	"io"
	"net"
	"path/filepath"
	"testing"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// serve answers TLS handshakes with the authority's leaves, by SNI or else for
// the address, and returns the port.
func serve(t *testing.T, a *Authority) string {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if hello.ServerName == "" {
				return a.Leaf("127.0.0.1")
			}
			return a.Leaf(hello.ServerName)
		},
	})
	must.OK(t, err)
	t.Cleanup(func() { l.Close() })
	go accept(l)
	_, port := must.Two(net.SplitHostPort(l.Addr().String()))(t)
	return port
}

// accept greets each connection and reads until its end.
func accept(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			_, _ = io.WriteString(conn, "hello\n")
			_, _ = io.Copy(io.Discard, conn)
		}()
	}
}

// authorities are the kinds of authority a client may meet.
func authorities(t *testing.T) map[string]*Authority {
	t.Helper()
	own := must.Get(Open(newDir(t), time.Now))(t)
	all := map[string]*Authority{"own": own}
	for name, key := range keys(t) {
		root := issue(t, "Example Root "+name, nil, key, withID("root "+name))
		middle := issue(t, "Example Intermediate "+name, root, nil, withID("middle "+name))
		for kind, chain := range map[string][]*issued{"root": {root}, "intermediate": {middle, root}} {
			certFile, keyFile := write(t, nil, chain...)
			a := must.Get(Load(certFile, keyFile, time.Now))(t)
			all[name+" "+kind] = a
		}
	}
	return all
}

func TestRFC5280_StrictOpenSSLAcceptsLeaves(t *testing.T) {
	openssl := testkit.Program(t, "openssl")
	for kind, a := range authorities(t) {
		port, roots := serve(t, a), filepath.Join(t.TempDir(), "roots.pem")
		put(t, roots, pemOf(certificateBlock, a.chain[len(a.chain)-1].Raw), 0o644)
		for _, host := range []string{"example.com", longName, "127.0.0.1"} {
			t.Run(kind+" "+host[:9], func(t *testing.T) {
				args := []string{"s_client", "-connect", "127.0.0.1:" + port, "-CAfile", roots, "-no-CApath", "-no-CAstore",
					"-x509_strict", "-verify_return_error", "-brief"}
				if host == "127.0.0.1" {
					args = append(args, "-noservername", "-verify_ip", host)
				} else {
					args = append(args, "-servername", host, "-verify_hostname", host)
				}
				must.Contain(t, run(t, true, openssl, args...), "Verification: OK", "not verified")
				out := run(t, false, openssl, append(args, "-verify_hostname", "other.test")...)
				must.Contain(t, out, "mismatch", "another name was not refused")
			})
		}
	}
}

func TestRFC5280_GnuTLSAcceptsLeaves(t *testing.T) {
	gnutls := testkit.Program(t, "gnutls-cli")
	for kind, a := range authorities(t) {
		t.Run(kind, func(t *testing.T) {
			port, roots := serve(t, a), filepath.Join(t.TempDir(), "roots.pem")
			put(t, roots, pemOf(certificateBlock, a.chain[len(a.chain)-1].Raw), 0o644)
			for _, host := range []string{"example.com", longName} {
				out := run(t, true, gnutls, "--x509cafile", roots, "--sni-hostname", host, "--verify-hostname", host, "-p", port, "127.0.0.1")
				must.Contain(t, out, "The certificate is trusted", "not trusted")
			}
			run(t, false, gnutls, "--x509cafile", roots, "--sni-hostname", "a.test", "--verify-hostname", "b.test", "-p", port, "127.0.0.1")
		})
	}
}

func TestRFC5280_GoAcceptsLeaves(t *testing.T) {
	for kind, a := range authorities(t) {
		t.Run(kind, func(t *testing.T) {
			port := serve(t, a)
			for _, host := range []string{"example.com", longName} {
				dialer := &net.Dialer{Timeout: testkit.Patience}
				conn, err := tls.DialWithDialer(dialer, "tcp", "127.0.0.1:"+port, &tls.Config{ServerName: host, RootCAs: pool(t, a)})
				must.OK(t, err, host)
				conn.Close()
			}
		})
	}
}
