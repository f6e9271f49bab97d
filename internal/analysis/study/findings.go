package study

import (
	"fmt"
	"slices"
	"strings"

	"heed/internal/base/safetext"
	"heed/internal/output/figures"
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
		if refused := sumsOf(r.Table("obedience"), "not_allowed"); refused.most > 0 {
			text += fmt.Sprintf("; most of them, %s, are of %s", figures.Commas(refused.most), safetext.Visible(refused.who))
		}
		add("%s.", text)
	}
	if asked := sumsOf(r.Table("asked"), "asked"); r.Agents > 0 {
		delete(asked.tokens, noUserAgent)
		add("%s of %s asked for robots.txt.", figures.Commas(int64(len(asked.tokens))), figures.Number(r.Agents, "program"))
	}
	if limited := sumsOf(r.Table("delays"), "limited").all; limited > 0 {
		kept := sumsOf(r.Table("delays"), "kept").all
		add("Of %s between requests for which a delay was asked, %s kept it (%s%s).",
			figures.Number(limited, "gap"), figures.Commas(kept), figures.Percent(kept, limited), intervalWords(kept, limited))
	}
	if names := sumsOf(r.Table("impostors"), "requests").tokens; len(names) > 0 {
		add("%s may be used by others too: see the possible impostors.", figures.Number(int64(len(names)), "name"))
	}
	undeclared(r, add)
	for _, row := range r.Table("coverage").Rows {
		if n, ok := row[1].(int64); ok && row[0] == unparsedLines && n > 0 {
			add("Lines that could not be read and are in no table: %s; what was read has their places.", figures.Commas(n))
		}
		if n, ok := row[1].(int64); ok && row[0] == tornFiles {
			add("Files that end early or are damaged: %s; what follows the damage is in no table.", figures.Commas(n))
		}
	}
	return all
}

// Table returns the table with a name; nil when there is none.
func (r *Result) Table(name string) *Table {
	if i := slices.IndexFunc(r.Tables, func(t *Table) bool { return t.Name == name }); i >= 0 {
		return r.Tables[i]
	}
	return nil
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

// sums are those of a column of counts: of all rows, and of the rows of each agent that has any,
// at all sites. who is the agent with the most.
type sums struct {
	all, most int64
	tokens    map[string]int64
	who       string
}

// sumsOf returns the sums of a column of counts.
func sumsOf(t *Table, column string) sums {
	s := sums{tokens: map[string]int64{}}
	for _, row := range t.Rows {
		token := row[t.column("token")].(string)
		if n, _ := row[t.column(column)].(int64); n > 0 { // else none, or not known
			s.all += n
			s.tokens[token] += n
		}
		if s.tokens[token] > s.most {
			s.who, s.most = token, s.tokens[token]
		}
	}
	return s
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
