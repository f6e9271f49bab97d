package store_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"heed/internal/audit"
	"heed/internal/audit/store"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

func open(t testing.TB, path string, o store.Options) *store.Writer {
	t.Helper()
	return must.Get(store.Open(path, o))(t)
}

func view(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro&_pragma=busy_timeout(5000)")
	if err == nil {
		err = db.Ping()
	}
	must.OK(t, err)
	t.Cleanup(func() { db.Close() })
	return db
}

func count(t testing.TB, db *sql.DB, query string, args ...any) (n int) {
	t.Helper()
	must.OK(t, db.QueryRow(query, args...).Scan(&n), query)
	return n
}

var robots = []byte("User-agent: *\nDisallow: /private\n")

// policy is a site's, as the cache makes it.
func policy(host string) *rules.Policy {
	s := &rules.Snapshot{Origin: rules.Origin{Scheme: "https", Host: host, Port: 443}, Status: 200,
		Chain: []string{"https://" + host + "/robots.txt"}, FetchedAt: time.Now().Add(-time.Minute)}
	s.Pack(robots)
	return rules.New(rules.Source{Origin: s.Origin, State: rules.Available, Status: 200, FetchedAt: s.FetchedAt, Snapshot: s}, robots)
}

// asked is a request that was judged by p.
func asked(p *rules.Policy, target string) *audit.Entry {
	agent := rules.Identify("TestBot/1.0")
	return &audit.Entry{
		ID: audit.NewID(), Time: time.Now(), Client: "192.0.2.7:4711", Mode: "enforce", Agent: agent, UserAgent: "TestBot/1.0",
		Method: "GET", Scheme: "https", Host: p.Source().Origin.Host, Target: target, Judged: audit.ByPath,
		Decision: p.Decide(agent, rules.NewTarget(target)), Policy: p, PolicyAge: time.Minute,
	}
}

func TestHeed_ADecisionIsReadInSQLiteWithItsOutcome(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.db")
	w := open(t, path, store.Options{Heed: "test"})
	p := policy("site.test")
	e := asked(p, "/private/x?a=1")
	must.OK(t, w.Decided(e))
	e.Outcome = audit.Outcome{Status: 403, BytesOut: 12, Duration: time.Millisecond}
	w.Ended(e)
	must.OK(t, w.Complete())
	db := view(t, path) // heed still has it open
	var id, url, verdict, rule, sum string
	var line, status int
	err := db.QueryRow("SELECT id, url, verdict, rule, line, robots_sha256, status FROM decisions").Scan(&id, &url, &verdict, &rule, &line, &sum, &status)
	must.OK(t, err)
	got := fmt.Sprint(id, " ", url, " ", verdict, " ", rule, " ", line, " ", sum, " ", status)
	want := fmt.Sprint(e.ID, " https://site.test/private/x?a=1 refuse Disallow: /private 2 ", rules.DigestOf(robots), " 403")
	must.Equal(t, got, want)
	must.OK(t, w.Close("heed is stopping"))
	err = w.Decided(e)
	must.True(t, err != nil, "a decision was accepted after the end")
}

func TestHeed_NamesAreStoredOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.db")
	w := open(t, path, store.Options{})
	p := policy("site.test")
	again := p.With(p.Source()) // as after a look into the cache
	for i := range 100 {
		e := asked([]*rules.Policy{p, again}[i%2], fmt.Sprint("/page/", i))
		must.OK(t, w.Decided(e))
		w.Ended(e)
	}
	must.OK(t, w.Close("heed is stopping"))
	db := view(t, path)
	for table, want := range map[string]int{"run": 1, "asker": 1, "site": 1, "body": 1, "snapshot": 1, "policy": 1, "ground": 1, "entry": 100, "outcome": 100} {
		must.Equal(t, count(t, db, "SELECT count(*) FROM "+table), want, "rows of %s", table)
	}
}
