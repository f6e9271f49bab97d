package bypass

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// startFree starts a site without robots.txt and without canaries: what is
// judged as its page must be served by it.
func startFree(t testing.TB) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
			return
		}
		w.Write([]byte("the free site"))
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}
