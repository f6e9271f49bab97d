package store

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"heed/rules"
)

// Filter selects decisions. The zero Filter selects all.
type Filter struct {
	From, To time.Time // From is included, To is not; zero: no limit
	// Client is an address as recorded, the name of a [[client]], a
	// proxy user or a product token. Empty: all.
	Client string
	// Host is a host, or "*.example.org" for all below it. Empty: all.
	Host    string
	Verdict string // allow, refuse or would-refuse; empty: all

	IDs    [2][]byte // the first and the last id selected; nil: all
	URL    *Address  // nil: all
	Newest bool      // only the last decision selected

	First, Last    int64 // entry.seq; 0: no limit
	AllowedByRules bool  // only requests that a policy allowed by their path
}

// Address is a recorded URL.
type Address struct {
	rules.Origin
	Target string
}

// Condition returns f as an SQL condition on the columns of the table entry or
// of the view standing, and the order of its rows.
func (f *Filter) Condition() string {
	all := f.Window()
	add := func(format string, values ...any) { all = append(all, fmt.Sprintf(format, values...)) }
	if f.Host != "" {
		all = append(all, "site IN (SELECT id FROM site WHERE "+f.Hosts()+")")
	}
	if f.Client != "" {
		all = append(all, "asker IN (SELECT id FROM asker WHERE "+f.Clients()+")")
	}
	if f.Verdict != "" {
		add("ground IN (SELECT id FROM ground WHERE verdict = %s)", literal(f.Verdict))
	}
	if f.AllowedByRules {
		add("ground IN (SELECT id FROM ground WHERE verdict = 'allow' AND policy IS NOT NULL AND judged = 'path')")
	}
	if f.First > 0 {
		add("seq >= %d", f.First)
	}
	if f.Last > 0 {
		add("seq <= %d", f.Last)
	}
	if f.IDs[0] != nil {
		add("id BETWEEN x'%x' AND x'%x'", f.IDs[0], f.IDs[1])
	}
	if u := f.URL; u != nil {
		targets := fmt.Sprintf("x'%x'", u.Target)
		if u.Target == "/" {
			targets += ", x''" // a tunnel to the host
		}
		add("site IN (SELECT id FROM site WHERE scheme = %s AND host = %s AND port = %d)", literal(u.Scheme), literal(u.Host), u.Port)
		add("target IN (%s)", targets)
	}
	if len(all) == 0 {
		return "TRUE"
	}
	return strings.Join(all, " AND ")
}

// selection returns the condition and the order of the rows that f selects.
func (f *Filter) selection() string {
	if f.Newest {
		return f.Condition() + " ORDER BY seq DESC LIMIT 1"
	}
	return f.Condition() + " ORDER BY seq"
}

// Window returns the conditions on the column time.
func (f *Filter) Window() (all []string) {
	if !f.From.IsZero() {
		all = append(all, fmt.Sprintf("time >= %d", f.From.UnixMicro()))
	}
	if !f.To.IsZero() {
		all = append(all, fmt.Sprintf("time < %d", f.To.UnixMicro()))
	}
	return all
}

// Hosts returns the condition on the table site that Host makes.
func (f *Filter) Hosts() string {
	host := strings.ToLower(f.Host)
	if below, ok := strings.CutPrefix(host, "*"); ok {
		return fmt.Sprintf("substr(host, -length(%s)) = %[1]s", literal(below))
	}
	if host == "" {
		return "TRUE"
	}
	return "host = " + literal(host)
}

// Clients returns the condition on the table asker that Client makes.
func (f *Filter) Clients() string {
	if f.Client == "" {
		return "TRUE"
	}
	return fmt.Sprintf("client = %s OR user = %[1]s OR client_name = %[1]s OR EXISTS (SELECT 1 FROM json_each(tokens) WHERE value = %[1]s COLLATE NOCASE)", literal(f.Client))
}

// literal returns s as an SQL literal.
func literal(s string) string {
	if strings.ContainsRune(s, 0) {
		return fmt.Sprintf("CAST(x'%x' AS TEXT)", s)
	}
	return "'" + strings.ReplaceAll(s, "'", "''") + "'"
}

// Counted returns the condition on the table exempt. The time of a gap is its end, and its
// beginning is in the text (audit.Gap): it is in the window when a part of it is.
func (f *Filter) Counted() string {
	where := append((&Filter{From: f.From}).Window(), "TRUE")
	if !f.To.IsZero() {
		where = append(where, "coalesce(1000000 * strftime('%s', substr(why, 14, 27)), time) < "+strconv.FormatInt(f.To.UnixMicro(), 10))
	}
	return strings.Join(where, " AND ")
}

// events returns the condition on rows e of an event and its site s, which may be NULL.
func (f *Filter) events() string {
	where := append(f.Window(), "TRUE")
	if f.Host != "" {
		where = append(where, f.Hosts())
	}
	return strings.Join(where, " AND ")
}
