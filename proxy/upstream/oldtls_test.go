package upstream

import (
	"crypto/rsa"
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"heed/internal/tools/testkit/must"
)

// Sites that offer only what heed does not by default are reached where the settings of
// their host allow it, and nowhere else.
func TestHostRoute_OldTLS(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]*tls.Config{
		"TLS 1.0":          {MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS10},
		"RSA key exchange": {MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_RSA_WITH_AES_256_GCM_SHA384}},
		"RSA and CBC":      {MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_RSA_WITH_AES_128_CBC_SHA}},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
			s.TLS = config
			s.StartTLS()
			t.Cleanup(s.Close)
			_, isRSA := s.TLS.Certificates[0].PrivateKey.(*rsa.PrivateKey)
			must.Need(t, isRSA, "the key of net/http/httptest is not RSA any more: give this server one that is")
			certificate := &SiteCert{Any: true}
			ask := func(old bool) error {
				w := NewHostTransports(TransportConfig{}, HostRoute{Match: pattern(t, "127.0.0.1"), Route: Route{Site: certificate, OldTLS: old}})
				t.Cleanup(w.CloseIdleConnections)
				r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL, nil)
				resp, err := w.RoundTrip(r)
				if err == nil {
					resp.Body.Close()
				}
				return err
			}
			err := ask(false)
			if f := FailureOf(err); f.Stage != NoTLS || !f.Lasting || !f.Offer || !strings.HasPrefix(f.Type, "tls_") || f.Cause == "" {
				t.Errorf("by default: %v, %+v", err, f)
			}
			must.OK(t, ask(true), "with OldTLS")
		})
	}
}
