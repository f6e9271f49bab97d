package upstream

import (
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"heed/internal/tools/testkit/must"
	"heed/internal/trust/passport"
)

// net/http sends a request again over HTTP/2 whose stream the site has refused. Each time it
// has another signature, and the caller's header none.
func TestSend_EachTimeOverHTTP2IsSignedAnew(t *testing.T) {
	t.Parallel()
	k := must.Get(passport.NewKey(time.Time{}))(t)
	signer := must.Get(passport.NewSigner(k, "https://bots.example/keys.json"))(t)
	var mu sync.Mutex
	seen, refused := map[string]bool{}, 0
	decoders := map[*http2.Framer]*hpack.Decoder{}
	addr := http2Heads(t, func(f *http2.Framer, h *http2.HeadersFrame) error {
		mu.Lock()
		defer mu.Unlock()
		if decoders[f] == nil {
			decoders[f] = hpack.NewDecoder(4096, nil)
		}
		fields, err := decoders[f].DecodeFull(h.HeaderBlockFragment())
		if err != nil {
			t.Error(err)
			return err
		}
		m := passport.Message{Method: "GET", Scheme: "https", Header: http.Header{}}
		for _, field := range fields {
			switch field.Name {
			case ":authority":
				m.Authority = field.Value
			case ":path":
				m.Target = field.Value
			default:
				m.Header.Add(field.Name, field.Value)
			}
		}
		c, err := passport.Read(&m)
		if err != nil {
			t.Error(err)
			return err
		}
		o, why := c.Verify([]passport.ListedKey{{PublicKey: k.PublicKey}}, time.Now())
		must.True(t, o == passport.Verified, "%s: %s", o, why)
		seen[m.Header.Get("Signature")] = true
		refused++
		return f.WriteRSTStream(h.StreamID, http2.ErrCodeRefusedStream)
	})
	w := NewHostTransports(TransportConfig{}, HostRoute{Match: pattern(t, "127.0.0.1"), Route: Route{Site: &SiteCert{Any: true}}})
	t.Cleanup(w.CloseIdleConnections)
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+addr+"/page?a=b", nil)
	_, err := w.Send(&Request{Request: r, Signer: signer})
	must.True(t, err != nil && !errors.Is(err, errHTTP1), "%v", err)
	mu.Lock()
	defer mu.Unlock()
	must.True(t, len(seen) >= 2 && len(seen) == refused && !passport.Signed(r.Header),
		"%d signatures of %d requests; the header of the caller: %v", len(seen), refused, r.Header)
}
