package replay

import (
	"database/sql"
	"testing"

	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// What sites said to one heed is judged by again, whatever they say now.
func TestHeed_AnEarlierRunsPoliciesAreJudgedBy(t *testing.T) {
	t.Parallel()
	c := newCrawl(t).entries(2000)
	c.closed()
	p := must.Get(OpenPolicies(c.path, rules.Strict))(t)
	last := map[rules.Origin]string{} // digest of the last file or, without one, state
	db := must.Get(sql.Open("sqlite", c.path))(t)
	defer db.Close()
	rows, err := db.Query(`SELECT s.scheme, s.host, s.port, p.state, coalesce(hex(b.sha256), '') FROM policy p JOIN site s ON s.id = p.site
LEFT JOIN snapshot n ON n.id = p.snapshot LEFT JOIN body b ON b.id = n.body ORDER BY p.id`)
	must.OK(t, err)
	defer rows.Close()
	for rows.Next() {
		var o rules.Origin
		var state, sum string
		must.OK(t, rows.Scan(&o.Scheme, &o.Host, &o.Port, &state, &sum))
		if last[o] == "" || state != "unreachable" {
			last[o] = state + sum
		}
	}
	must.Need(t, len(last) > 0 && p.Len() == len(last), "%d sites of %d", p.Len(), len(last))
	for o, want := range last {
		for range 2 { // of the record, and of memory
			got := p.Policy(t.Context(), o, "curl/8")
			must.True(t, got.Profile() == rules.Strict && got.Source().Origin == o, "%s: %+v", o, got.Source())
			snapshot := got.Source().Snapshot
			has := snapshot != nil && snapshot.Zlib != nil
			must.True(t, has == (len(want) > 32), "%s: a file: %v, recorded %s", o, has, want)
		}
	}
	other := p.Policy(t.Context(), rules.Origin{Scheme: "https", Host: "other.test", Port: 443}, "curl/8")
	if source := other.Source(); source.State != rules.Unreachable || source.Err == nil || source.NoConnection {
		t.Errorf("of a site that is not in the record: %+v", source)
	}
	must.Equal(t, other.Decide(nil, rules.NewTarget("/robots.txt")).Verdict, rules.Allow, "its robots.txt may not be asked for")
}
