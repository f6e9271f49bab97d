package cache

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"testing"
	"time"

	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// What was fetched is reported once for each fetch, and the policies in memory are counted
// by their state until they are evicted.
func TestCache_FetchesAndPoliciesAreCounted(t *testing.T) {
	t.Parallel()
	status := http.StatusOK
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if w.Header().Set("ETag", `"1"`); r.Header.Get("If-None-Match") != "" && status == http.StatusOK {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.WriteHeader(status)
		fmt.Fprint(w, "User-agent: *\nDisallow: /private\n")
	}))
	defer site.Close()
	memory := NewMemory(3, 0)
	var outcomes []string
	c, clock := newCache(t, Config{Memory: memory, Fetched: func(outcome string, took time.Duration) {
		must.True(t, took > 0 && slices.Contains(FetchOutcomes(), outcome), "%s took %v", outcome, took)
		outcomes = append(outcomes, outcome)
	}})
	at, _ := url.Parse(site.URL)
	o := must.Get(rules.OriginOf(at))(t)
	fetch := func(o rules.Origin, answer int, want string) {
		t.Helper()
		status, outcomes = answer, nil
		clock.step(48 * time.Hour)
		c.Policy(context.Background(), o, "")
		must.True(t, len(outcomes) > 0 && outcomes[0] == want, "%v, want %s", outcomes, want)
	}
	fetch(o, http.StatusOK, "available")
	fetch(o, http.StatusOK, "not_modified")
	n := memory.Counts()
	must.True(t, n.States[rules.Available] == 1 && n.Bytes > 0, "%+v", n)
	fetch(o, http.StatusNotFound, "unavailable")
	fetch(o, http.StatusBadGateway, "unreachable")
	n = memory.Counts()
	must.True(t, n.States[rules.Available] == 0 && n.States[rules.Unreachable]+n.States[rules.Unavailable] == 1, "%+v", n)
	for i := range 20 {
		closed := o
		closed.Port = uint16(1 + i)
		c.Policy(context.Background(), closed, "")
	}
	sum := 0
	for _, n := range memory.Counts().States {
		sum += n
	}
	must.True(t, sum <= 3, "%d policies counted in a memory of 3", sum)
}
