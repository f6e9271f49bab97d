package upstream

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// apacheTLS is a site that asks for a certificate in a second handshake, for two folders.
const apacheTLS = `ServerRoot %[1]q
ServerName 127.0.0.1
PidFile %[1]s/httpd.pid
ErrorLog %[1]s/error.log
Listen %[2]s
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule ssl_module /usr/lib/apache2/modules/mod_ssl.so
DocumentRoot %[1]q
SSLEngine on
SSLProtocol TLSv1.2
SSLCertificateFile %[3]q
SSLCertificateKeyFile %[4]q
SSLCACertificateFile %[5]q
<Location /optional>
	SSLVerifyClient optional_no_ca
</Location>
<Location /required>
	SSLVerifyClient optional_no_ca
	Require expr "%%{SSL_CLIENT_CERT} =~ /BEGIN/"
</Location>
`

// startApacheTLS returns the address of a site of apacheTLS with pages /, /optional/ and
// /required/, and the files of its certificate.
func startApacheTLS(t *testing.T) (addr, cert, key string) {
	dir := t.TempDir()
	must.OK(t, os.Chmod(filepath.Dir(dir), 0o755))
	ca := testkit.NewCA(t)
	cert, key = ca.Leaf(t, "127.0.0.1")
	addr = testkit.FreeAddr(t)
	conf := fmt.Sprintf(apacheTLS, dir, addr, cert, key, ca.File)
	if os.Geteuid() == 0 {
		conf += "User nobody\nGroup nogroup\n"
	}
	for name, content := range map[string]string{"httpd.conf": conf, "page": "hello", "optional/page": "hello", "required/page": "hello"} {
		must.OK(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		must.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644))
	}
	var said bytes.Buffer
	cmd := exec.Command(testkit.Program(t, "apache2"), "-f", filepath.Join(dir, "httpd.conf"), "-D", "FOREGROUND")
	cmd.Stderr, cmd.Stdout = &said, &said
	testkit.NotOrphaned(cmd)
	must.OK(t, cmd.Start())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		cmd.Wait()
	}()
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		<-ended
	})
	testkit.Until(t, "Apache", func() bool {
		select {
		case <-ended:
			t.Fatalf("Apache has ended: %s", said.String())
		default:
		}
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return false
		}
		c.Close()
		return true
	})
	return addr, cert, key
}

// A site that asks for a renegotiation of TLS is reached where the settings of its host
// allow one, with a client certificate where it needs that. Elsewhere the failure is what
// heed has done, and not an end that the site has made.
func TestHostRoute_Renegotiate(t *testing.T) {
	t.Parallel()
	addr, certFile, keyFile := startApacheTLS(t)
	pair := must.Get(tls.LoadX509KeyPair(certFile, keyFile))(t)
	certificate := &SiteCert{Any: true}
	ask := func(path string, r Route) (status int, remark string, err error) {
		r.Site = certificate
		w := NewHostTransports(TransportConfig{}, HostRoute{Match: pattern(t, "127.0.0.1"), Route: r})
		t.Cleanup(w.CloseIdleConnections)
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+addr+path, nil)
		q := &Request{Request: req}
		resp, err := w.Send(q)
		if err != nil {
			return 0, q.Remark, err
		}
		resp.Body.Close()
		return resp.StatusCode, q.Remark, nil
	}
	for _, c := range []struct {
		path   string
		route  Route
		status int // 0: it fails
	}{
		{"/page", Route{}, 200},
		{"/optional/page", Route{}, 0},
		{"/optional/page", Route{Certificate: &pair}, 0},
		{"/page", Route{Renegotiate: true}, 200},
		{"/optional/page", Route{Renegotiate: true}, 200},
		{"/required/page", Route{Renegotiate: true}, 403},
		{"/required/page", Route{Renegotiate: true, Certificate: &pair}, 200},
	} {
		status, remark, err := ask(c.path, c.route)
		must.True(t, status == c.status && c.route.Renegotiate == strings.Contains(remark, "TLS 1.2"),
			"%s, %+v: %d %q, %v", c.path, c.route, status, remark, err)
		if f := FailureOf(err); c.status == 0 && (f.Stage != Ended || f.Type != "tls_protocol_error" || !f.Again || !f.Lasting || !strings.Contains(f.Cause, "renegotiation")) {
			t.Errorf("%s, %+v: %v, %+v", c.path, c.route, err, f)
		}
	}
}
