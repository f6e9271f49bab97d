package upstream

import (
	"io"
	"net/http"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// A site whose name server answers for one family of addresses alone is reached over that one.
func TestDial_ANameThatIsHalfResolved(t *testing.T) {
	t.Parallel()
	n := testkit.NewNetwork(t, map[string]string{"four.test": "127.0.0.1 silent6", "six.test": "::1 silent4", "both.test": "127.0.0.1 ::1"})
	page := func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "page") }
	port := n.Serve("127.0.0.1", page)
	n.ServeAt("[::1]:"+port, page)
	for _, host := range []string{"four.test", "six.test", "both.test"} {
		t.Run(host, func(t *testing.T) {
			t.Parallel()
			r := must.Get(http.NewRequest(http.MethodGet, "http://"+host+":"+port+"/", nil))(t)
			resp := must.Get(NewHostTransports(TransportConfig{Dialer: n.Dialer()}).RoundTrip(r))(t)
			defer resp.Body.Close()
			text, err := io.ReadAll(resp.Body)
			must.True(t, string(text) == "page" && err == nil, "%q, %v", text, err)
		})
	}
}
