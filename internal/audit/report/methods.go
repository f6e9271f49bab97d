package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

// methods is what a paragraph on methods says of a record; it is gathered from
// the rows of the tables, so that it cannot say other than they do.
type methods struct {
	record Record
	last   int64 // entry.seq

	store                    string
	row                      map[string]string // of table "record"
	agents, sites            map[string]bool
	allowed, refused, would  int64
	not, path, host          int64
	decided, stale           int64 // under a policy
	unavailable, unreachable int64
	own                      int64
	sensitivity              []Sensitivity
}

// note takes in a row of a table.
func (m *methods) note(table string, columns, cells []string) {
	row := map[string]string{}
	for i, c := range columns {
		row[c] = cells[i]
	}
	number := func(column string) int64 {
		n, _ := strconv.ParseInt(row[column], 10, 64) // as the query wrote it
		return n
	}
	switch table {
	case "record":
		m.row, m.store = row, row["record"]
		m.agents, m.sites = map[string]bool{}, map[string]bool{}
	case "requests":
		m.agents[row["agent"]], m.sites[row["site"]] = true, true
		m.allowed += number("allowed")
		m.refused += number("refused")
		m.would += number("would_refuse")
		m.not += number("not_judged")
	case "coverage":
		switch row["judged"] {
		case judgedHost:
			m.host += number("requests")
		case "path":
			m.path += number("requests")
		}
	case "policies":
		m.policy(row, number("requests"))
	}
}

func (m *methods) policy(row map[string]string, n int64) {
	m.decided += n
	switch {
	case row["own"] == "1":
		m.own += n
	case row["stale"] == "1":
		m.stale += n
	case row["state"] == "unavailable":
		m.unavailable += n
	case row["state"] == "unreachable":
		m.unreachable += n
	}
}

// write writes the paragraph, in lines that a terminal shows whole.
func (m *methods) write(w io.Writer, window string) {
	all := m.allowed + m.refused + m.would + m.not
	if all == 0 {
		fmt.Fprintf(w, "The record %s holds no requests%s.\n\n", m.store, comma(window))
		return
	}
	text := fmt.Sprintf("Requests were made through heed %s, a forward proxy that judges every request by the site's robots.txt (RFC 9309; rules engine %s, profile %s) before it leaves. ",
		m.row["heed"], m.row["engine"], m.row["profile"])
	text += fmt.Sprintf("From %s to %s%s it recorded %s by %s to %s: %s (%s) were allowed, %s (%s) refused, %s (%s) not allowed but let through while only observed, and %s (%s) not judged. ",
		m.row["first"], m.row["last"], comma(window), number(all, "request"), number(int64(len(m.agents)), "agent"), number(int64(len(m.sites)), "site"),
		commas(m.allowed), percent(m.allowed, all), commas(m.refused), percent(m.refused, all), commas(m.would), percent(m.would, all), commas(m.not), percent(m.not, all))
	text += fmt.Sprintf("%s of all requests were judged by their path, %s by the host alone. ", percent(m.path, all), percent(m.host, all))
	text += fmt.Sprintf("Of the requests decided under a site's policy, %s rested on an old copy of a robots.txt that could not be had again, %s on the site's statement that it has none (4xx), %s were decided while it could not be had, and %s by a file of the operator in its place. ",
		percent(m.stale, m.decided), percent(m.unavailable, m.decided), percent(m.unreachable, m.decided), percent(m.own, m.decided))
	for _, s := range m.sensitivity {
		text += fmt.Sprintf("Judged again under the profile %s, %s of %s would have had another verdict. ", s.Profile, commas(s.Allowed+s.Refused), commas(s.Judged))
	}
	if m.row["exempt"] != "0" {
		text += fmt.Sprintf("%s requests of exempt clients were only counted. ", m.row["exempt"])
	}
	if m.row["unrecorded"] != "0" {
		text += fmt.Sprintf("%s requests could not be recorded. ", m.row["unrecorded"])
	}
	text += fmt.Sprintf("The settings in force have the SHA-256 %s. Each decision was recorded before it took effect, in a record chained by SHA-256 (%s) whose head was %s at commit %s; a copy of it can be held against that with heed audit verify --head, and every verdict made again with heed audit replay.",
		strings.Join(strings.Fields(m.row["configuration"]), ", "), m.store, m.row["head"], m.row["head_commit"])
	fmt.Fprintln(w, wrap(text, 80))
	fmt.Fprintln(w)
}

func comma(window string) string {
	if window == "" {
		return ""
	}
	return " (" + Printable(window) + ")"
}

// wrap breaks a text into lines; a number keeps its percent sign.
func wrap(text string, width int) string {
	var b strings.Builder
	at := 0
	for _, word := range strings.Fields(strings.ReplaceAll(text, " %", "\x00%")) {
		word = strings.ReplaceAll(word, "\x00", " ")
		switch {
		case at == 0:
		case at+1+len(word) > width:
			b.WriteByte('\n')
			at = 0
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += len(word)
	}
	return b.String()
}
