package report

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// joint returns what one paragraph says of all records with requests together: the sums, and
// the values that occur. empty are the names of records without requests.
func joint(all []*methods) (sum *methods, empty []string) {
	sum = &methods{row: map[string]string{}, agents: map[string]bool{}, sites: map[string]bool{}, sums: map[string]int64{}}
	profiles := map[string]*Sensitivity{}
	var heads, order []string
	for _, m := range all {
		if m.sums["all"] == 0 {
			empty = append(empty, m.row["record"])
			continue
		}
		maps.Copy(sum.agents, m.agents)
		maps.Copy(sum.sites, m.sites)
		for name, n := range m.sums {
			sum.sums[name] += n
		}
		sum.classes.Add(&m.classes)
		sum.wouldBe.Add(&m.wouldBe)
		sum.join(m.row)
		sum.purposes = union(sum.purposes, m.purposes)
		heads = append(heads, fmt.Sprintf("%s whose head was %s at commit %s", m.row["record"], m.row["head"], m.row["head_commit"]))
		for _, s := range m.otherProfiles() {
			if profiles[s.Profile] == nil {
				profiles[s.Profile] = &Sensitivity{Profile: s.Profile}
				order = append(order, s.Profile)
			}
			x := profiles[s.Profile]
			x.Judged, x.Allowed, x.Refused, x.Otherwise = x.Judged+s.Judged, x.Allowed+s.Allowed, x.Refused+s.Refused, x.Otherwise+s.Otherwise
		}
	}
	for _, name := range order {
		sum.sensitivity = append(sum.sensitivity, *profiles[name])
	}
	sum.heads = heads
	return sum, empty
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

// otherProfiles returns how the decisions would have been under other profiles than the one
// that all of them were made under.
func (m *methods) otherProfiles() []Sensitivity {
	return slices.DeleteFunc(slices.Clone(m.sensitivity), func(s Sensitivity) bool { return m.row["profile"] == s.Profile })
}
