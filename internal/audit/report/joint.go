package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// joint adds what one paragraph says of all records with requests together: the values that
// occur, and the sums that note has not. empty are the names of records without requests.
func (m *methods) joint(all []*tabled) (empty []string) {
	for _, x := range all {
		if x.requests == 0 {
			empty = append(empty, x.row["record"])
			continue
		}
		m.join(x.row)
		m.purposes = union(m.purposes, x.purposes)
		m.heads = append(m.heads, fmt.Sprintf("%s whose head was %s at commit %s", x.row["record"], x.row["head"], x.row["head_commit"]))
		for _, s := range x.sensitivity {
			if s.Profile == x.row["profile"] {
				continue // the one that all of its decisions were made under
			}
			i := slices.IndexFunc(m.sensitivity, func(o Sensitivity) bool { return o.Profile == s.Profile })
			if i < 0 {
				m.sensitivity = append(m.sensitivity, s)
				continue
			}
			o := &m.sensitivity[i]
			o.Judged, o.Allowed, o.Refused, o.Otherwise = o.Judged+s.Judged, o.Allowed+s.Allowed, o.Refused+s.Refused, o.Otherwise+s.Otherwise
		}
	}
	return empty
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
