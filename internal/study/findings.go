package study

import (
	"fmt"
	"strings"

	"heed/internal/figures"
	"heed/internal/safetext"
)

// Findings sums up in sentences what the tables show.
func (r *Result) Findings() (all []string) {
	if r.Requests == 0 {
		return nil
	}
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	if r.Judged > 0 {
		text := fmt.Sprintf("robots.txt does not allow %s of %s judged (%s%s)",
			figures.Commas(r.Refused), figures.Number(r.Judged, "request"), figures.Percent(r.Refused, r.Judged), intervalWords(r.Refused, r.Judged))
		if who, n := mostOf(r, "obedience", "not_allowed"); n > 0 {
			text += fmt.Sprintf("; most of them, %s, are of %s", figures.Commas(n), who)
		}
		add("%s.", text)
	}
	if asked := tokensWith(r, "asked", "asked"); r.Agents > 0 {
		add("%s of %s asked for robots.txt.", figures.Commas(asked), figures.Number(r.Agents, "program"))
	}
	if limited := sumOf(r, "delays", "limited"); limited > 0 {
		kept := sumOf(r, "delays", "kept")
		add("Of %s between requests for which a delay was asked, %s kept it (%s%s).",
			figures.Number(limited, "gap"), figures.Commas(kept), figures.Percent(kept, limited), intervalWords(kept, limited))
	}
	if n := tokensWith(r, "impostors", "requests"); n > 0 {
		add("%s may be used by others too: see the possible impostors.", figures.Number(n, "name"))
	}
	undeclared(r, add)
	if t := r.Table("coverage"); t != nil {
		for _, row := range t.Rows {
			if n, ok := row[1].(int64); ok && row[0] == unparsedLines && n > 0 {
				add("Lines that could not be read and are in no table: %s; what was read has their places.", figures.Commas(n))
			}
		}
	}
	return all
}

// undeclared adds how many clients without a robot's name have a sign of programs.
func undeclared(r *Result, add func(string, ...any)) {
	var clients, requests int64
	t := r.Table("undeclared")
	for _, row := range t.Rows {
		if row[t.column("sign")] == signAsked {
			clients += row[t.column("clients")].(int64)
			requests += row[t.column("requests")].(int64)
		}
	}
	if clients > 0 {
		add("%s with %s named no robot and asked for robots.txt.", figures.Number(clients, "client"), figures.Number(requests, "request"))
	}
}

// sumOf returns the sum of a column of counts.
func sumOf(r *Result, table, column string) (sum int64) {
	t := r.Table(table)
	for _, row := range t.Rows {
		n, _ := row[t.column(column)].(int64) // nil: not known
		sum += n
	}
	return sum
}

// tokensWith returns of how many agents, at any site, a column is above 0.
func tokensWith(r *Result, table, column string) int64 {
	t, found := r.Table(table), map[any]bool{}
	for _, row := range t.Rows {
		if n, _ := row[t.column(column)].(int64); n > 0 {
			found[row[t.column("token")]] = true
		}
	}
	return int64(len(found))
}

// mostOf returns the agent with the most in a column of counts.
func mostOf(r *Result, table, column string) (who string, most int64) {
	t, sums := r.Table(table), map[string]int64{}
	for _, row := range t.Rows {
		token, _ := row[t.column("token")].(string)
		n, _ := row[t.column(column)].(int64)
		if sums[token] += n; sums[token] > most {
			who, most = safetext.Visible(token), sums[token]
		}
	}
	return who, most
}

// Empty names the tables without rows in a sentence, with what their notes say; empty when
// there are none.
func (r *Result) Empty() string {
	var names []string
	notes, known := "", map[string]bool{}
	for _, t := range r.Tables {
		for _, note := range t.Notes {
			if t.idle() && !known[note] {
				notes += "; " + note
			}
			known[note] = true
		}
		if t.idle() {
			names = append(names, fmt.Sprintf("%d. %s", t.Number, t.Title))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "Nothing to show in " + strings.Join(names, ", ") + notes + "."
}
