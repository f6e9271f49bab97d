package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"heed/internal/audit"
	"heed/internal/audit/store"
	"heed/internal/audit/uses"
	"heed/internal/base/safetext"
	"heed/internal/judge/reason"
	"heed/internal/output/figures"
	"heed/internal/output/table"
)

// methods is what the paragraph on methods says of all records; it is gathered from
// the rows of the tables, so that it cannot say other than they do.
type methods struct {
	row           map[string]string // of table "record": those of all records joined
	agents, sites map[string]bool
	sums          map[string]int64 // of requests, by how they were judged and by their policy
	classes       reason.Counts
	wouldBe       reason.Counts // those that were only observed, by the class of their refusal
	sensitivity   []Sensitivity
	purposes      []string // that clients stated
	obeyed        []string // agents with what they obeyed besides their own names
	names         []string // of clients, under which heed asked for files
	files         []file   // that decided
	heads         []string // of the records with requests
	hashes        []string // and what their hashes are
	empty         []string // the names of the others
}

// file is a row of table "policies": how many requests a robots.txt, or the lack of one, decided.
type file struct {
	record, key string
	requests    int64
	earlier     int64 // received before the record was begun
}

// tabled is a record of which tables are made.
type tabled struct {
	reader *store.Reader
	commit int64 // the last one
	// filter selects the decisions that count: of those that the last commit covers, so that
	// its head proves all that the tables count although a heed goes on writing.
	filter store.Filter

	row      map[string]string // of table "record"
	purposes []string          // that its clients stated
}

// note takes in a row of a table of x.
func (m *methods) note(x *tabled, name string, row map[string]string) {
	number := func(column string) int64 {
		n, _ := strconv.ParseInt(row[column], 10, 64) // as the query wrote it
		return n
	}
	switch name {
	case "record":
		if x.row = row; row["requests"] == "0" {
			m.empty = append(m.empty, row["record"])
			return
		}
		m.join(row)
		m.purposes = union(m.purposes, x.purposes)
		hashes := "a chain"
		if x.reader.Provable() {
			hashes = "a tree"
		}
		m.hashes = union(m.hashes, []string{hashes})
		m.heads = append(m.heads, fmt.Sprintf("%s whose head was %s at commit %s", row["record"], row["head"], row["head_commit"]))
	case "requests":
		m.agents[row["agent"]], m.sites[row["site"]] = true, true
		m.sums["all"] += number("requests")
		for _, class := range reason.Classes() {
			m.classes[class] += number("class_" + class.Key())
			m.wouldBe[class] += number("would_be_" + class.Key()) // 0 for those without a column
		}
	case "rules":
		if uses.BySignal(row["reason"]) {
			m.sums["signal"] += number("requests")
		}
	case "coverage":
		m.sums["by "+row["judged"]] += number("requests")
	case "agents":
		if row["also_obey"] != "" {
			m.obeyed = union(m.obeyed, []string{row["agent"] + " those for " + strings.ReplaceAll(row["also_obey"], " ", ", ")})
		}
	case "redirects":
		m.sums["redirects"] += number("redirects")
		m.sums["redirects refused"] += number("next_refused_by_rule")
	case "events":
		m.sums["event "+row["kind"]] += number("count")
		if row["kind"] == string(audit.RulesAsked) {
			m.names = union(m.names, []string{row["name"]})
		}
	case "policies":
		m.files = append(m.files, file{row["record"], strings.Join([]string{row["site"], row["state"], row["status"], row["robots_sha256"]}, " "), number("requests"), number("earlier")})
		m.sums["decided"] += number("requests")
		switch {
		case row["own"] == "1":
			m.sums["own"] += number("requests")
		case row["stale"] == "1":
			m.sums["stale"] += number("requests")
		default:
			m.sums["state "+row["state"]] += number("requests")
		}
	}
}

// readPurposes notes the purposes of the clients that the filter selects.
func (x *tabled) readPurposes() error {
	known := map[string]bool{}
	err := x.reader.Clients(&x.filter, func(c *store.Client) {
		for _, p := range c.Purposes {
			if c.Selected {
				known[p] = true
			}
		}
	})
	x.purposes = slices.Sorted(maps.Keys(known))
	return err
}

// write writes the paragraph about all records, in lines that a terminal shows whole.
func (m *methods) write(w io.Writer, window string) {
	all, decided := m.sums["all"], m.sums["decided"]
	of := func(sum string) string { return figures.Percent(m.sums[sum], all) }
	ofDecided := func(sum string) string { return figures.Percent(m.sums[sum], decided) }
	list := func(column string) string { return strings.Join(strings.Fields(m.row[column]), ", ") }
	profiles := "profile " + list("profile")
	if strings.Contains(profiles, ",") {
		profiles = "profiles " + list("profile")
	}
	text := fmt.Sprintf("Requests were made through heed %s, a forward proxy that judges every request by the site's robots.txt (RFC 9309; %s, %s) before it leaves. ",
		list("heed"), enginesNamed(strings.Fields(m.row["engine"])), profiles)
	text += fmt.Sprintf("From %s to %s%s it recorded %s by %s to %s: %s. ",
		m.row["first"], m.row["last"], comma(window), figures.Number(all, "request"), figures.Number(int64(len(m.agents)), "agent"), figures.Number(int64(len(m.sites)), "site"),
		m.classes.Words(func(n int64) string { return figures.Commas(n) + " (" + figures.Percent(n, all) + ")" }))
	statements := ""
	if m.sums["signal"] > 0 {
		statements = "; refused by statement those whose purpose the site does not allow"
	}
	text += "Refused by rule are only the requests that a rule of the site's robots.txt does not allow" + statements + "; rules unavailable are those to sites whose robots.txt could not be read, and failed those to sites that did not answer or that heed could not process. "
	if observed := m.wouldBe.OnlyWords(figures.Commas); observed != "" {
		text += fmt.Sprintf("Of the allowed and the failed, %s only observed; enforced, these would be: %s. ", were(m.wouldBe.Sum()), observed)
	}
	text += fmt.Sprintf("%s of all requests were judged by their path, %s by the host alone. ", of("by path"), of("by host"))
	text += fmt.Sprintf("Of the requests decided under a site's policy, %s rested on an old copy of a robots.txt that could not be read again, %s on the site's statement that it has none (4xx), %s were decided while it could not be read, and %s by a file of the operator in its place. ",
		ofDecided("stale"), ofDecided("state unavailable"), ofDecided("state unreachable"), ofDecided("own"))
	text += m.earlier() + m.beside()
	if len(m.purposes) > 0 {
		text += fmt.Sprintf("Clients stated that they crawl for %s. What sites state about the use of their pages (Content-Signal, Content-Usage, RSL licences, TDMRep, X-Robots-Tag, META elements) was read from robots.txt, from the documents that these purposes need, from the header of each answer and, where the settings want it, from the first 256 KiB of the head of each page; it refused %s (%s), before they were sent or by withholding the page. What was not stated or could not be read is unknown, and refused only under the profile strict. ",
			safetext.Visible(strings.Join(m.purposes, ", ")), figures.Number(m.sums["signal"], "request"), of("signal"))
	}
	if i := slices.IndexFunc(m.sensitivity, func(s Sensitivity) bool { return s.Judged > 0 && s.Judged < all }); i >= 0 {
		text += "Only requests that robots.txt decided can be judged again: not those that a setting, a limit or a statement of use decided, that were malformed or in a tunnel, or that depend on values of which the record has hashes. "
	}
	for _, s := range m.sensitivity {
		if n := s.Allowed + s.Refused; s.Judged > 0 {
			low, high := figures.Wilson(n, s.Judged)
			text += fmt.Sprintf("Judged again under the profile %s, %s of %s would have had another verdict (%s, 95 %% interval %s). ",
				s.Profile, figures.Commas(n), figures.Commas(s.Judged), figures.Percent(n, s.Judged), figures.Interval(low, high))
		}
	}
	for _, left := range [][2]string{
		{"exempt", "of exempt clients were only counted"}, {"refused_unrecorded", "were refused while the record could not be written, and are in no table"}, {"unrecorded", "could not be recorded"},
	} {
		if n := m.row[left[0]]; n != "0" {
			text += fmt.Sprintf("%s requests %s. ", n, left[1])
		}
	}
	text += fmt.Sprintf("The settings in force have the SHA-256 %s. Each decision was recorded before it took effect, in a record of which every row is covered by %s of SHA-256 hashes (%s); a copy of it can be held against that with heed audit verify --head, and every verdict made again with heed audit replay.",
		list("configuration"), strings.Join(m.hashes, " or "), strings.Join(m.heads, ", "))
	fmt.Fprintln(w, table.Wrap(text, ""))
	fmt.Fprintln(w)
}

// earlier says by which files of before their record was begun requests were decided, and which
// of these another of the records received.
func (m *methods) earlier() string {
	received := map[string]string{}
	for _, f := range m.files {
		if f.earlier < f.requests {
			received[f.key] = f.record
		}
	}
	all, from := int64(0), map[string]int64{}
	for _, f := range m.files {
		if all += f.earlier; f.earlier > 0 && received[f.key] != "" && received[f.key] != f.record {
			from[received[f.key]] += f.earlier
		}
	}
	if all == 0 {
		return ""
	}
	text := fmt.Sprintf("For %s (%s) the answer to the request for the robots.txt had been received before the record was begun: it was stored, or named with heed run --policies (policies.csv has its time and SHA-256)", figures.Number(all, "request"), figures.Percent(all, m.sums["decided"]))
	for _, record := range slices.Sorted(maps.Keys(from)) {
		text += fmt.Sprintf("; for %s of them it is the one that %s received", figures.Commas(from[record]), record)
	}
	return text + ". "
}

// beside says what else was requested, and what redirects led to.
func (m *methods) beside() (text string) {
	if len(m.obeyed) > 0 {
		text += "Besides the groups for its own name, these agents obeyed others: " + safetext.Visible(strings.Join(m.obeyed, "; ")) + ". "
	}
	if n := m.sums["event own"] + m.sums["event robots"]; n > 0 {
		text += fmt.Sprintf("Sites answered %s for robots.txt of heed under its own name", figures.Number(m.sums["event own"], "request"))
		if m.sums["event robots"] > 0 {
			text += fmt.Sprintf(", and after an answer of 401 or 403 %s under the name of the client (%s)", figures.Commas(m.sums["event robots"]), safetext.Visible(strings.Join(m.names, ", ")))
		}
		text += "; these are not among the requests above. "
	}
	if n := m.sums["event bypassed"]; n > 0 {
		text += fmt.Sprintf("Programs of the runs opened about %s that did not come through heed (an estimate; events.csv has the programs). ", figures.Number(n, "connection"))
	}
	if n := m.sums["redirects"]; n > 0 {
		text += fmt.Sprintf("Sites answered %s with a redirect; where it led is judged as any other request, and the client's next one was refused by rule after %s of them (redirects.csv). ", figures.Number(n, "request"), figures.Commas(m.sums["redirects refused"]))
	}
	return text
}

func were(n int64) string {
	if n == 1 {
		return "1 was"
	}
	return figures.Commas(n) + " were"
}

func comma(window string) string {
	if window == "" {
		return ""
	}
	return " (" + safetext.Visible(window) + ")"
}

// judged adds what other profiles would have decided on the requests of x.
func (m *methods) judged(x *tabled, list []Sensitivity) {
	for _, s := range list {
		i := slices.IndexFunc(m.sensitivity, func(o Sensitivity) bool { return o.Profile == s.Profile })
		switch {
		case s.Profile == x.row["profile"], x.row["requests"] == "0":
		case i < 0:
			m.sensitivity = append(m.sensitivity, s)
		default:
			o := &m.sensitivity[i]
			o.Judged, o.Allowed, o.Refused, o.Otherwise = o.Judged+s.Judged, o.Allowed+s.Allowed, o.Refused+s.Refused, o.Otherwise+s.Otherwise
		}
	}
}

// join adds the row of another record: the widest time, the words of lists, the sums of counts.
func (m *methods) join(row map[string]string) {
	if first := m.row["first"]; first == "" || row["first"] < first {
		m.row["first"] = row["first"]
	}
	m.row["last"] = max(m.row["last"], row["last"])
	for _, list := range []string{"heed", "engine", "profile", "configuration"} {
		m.row[list] = strings.Join(union(strings.Fields(m.row[list]), strings.Fields(row[list])), " ")
	}
	for _, count := range []string{"exempt", "refused_unrecorded", "unrecorded"} {
		a, _ := strconv.ParseInt(m.row[count], 10, 64) // as the query wrote it; empty is 0
		b, _ := strconv.ParseInt(row[count], 10, 64)
		m.row[count] = strconv.FormatInt(a+b, 10)
	}
}

// union returns the words of both lists, each once, in their order.
func union(a, b []string) []string {
	for _, s := range b {
		if !slices.Contains(a, s) {
			a = append(a, s)
		}
	}
	return a
}
