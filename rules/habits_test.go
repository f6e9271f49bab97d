package rules_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"heed/rules"
)

// habitFile is a file in the habits of real sites, and what it means as a plain file.
type habitFile struct {
	written strings.Builder
	groups  []habitGroup
	before  int // the group that a joined line interrupts, from 1; 0: none
}

type habitGroup struct{ names, rules []string }

// plain returns the meaning of the file in plain lines.
func (h *habitFile) plain() string {
	var b strings.Builder
	for _, g := range h.groups {
		for _, n := range g.names {
			b.WriteString("User-agent: " + n + "\n")
		}
		b.WriteString(strings.Join(append(g.rules, "Disallow:\n"), "\n"))
	}
	return b.String()
}

// last returns the group that is open; nil when there is none.
func (h *habitFile) last() *habitGroup {
	if len(h.groups) == 0 {
		return nil
	}
	return &h.groups[len(h.groups)-1]
}

// name returns a name as it is, and as sites write it.
func (m maker) habitName() (plain []string, written string) {
	if m.IntN(4) == 0 {
		return []string{"*"}, m.pick("*", "*", "**", "*.*", "* all robots", "*;", "*/1.0", "*\u00a0", "* (all)", "*\xa0", "*\u200b")
	}
	n := makerNames[m.IntN(len(makerNames))]
	switch m.IntN(12) {
	case 0:
		other := makerNames[m.IntN(len(makerNames))]
		return []string{n, other}, n + m.pick(",", ", ", " , ", "/1.0, ") + other + m.pick("", ",", "*")
	case 1:
		return []string{n}, "Mozilla/5.0 (compatible; " + n + "/1.0; +http://site.test/bot)"
	case 2, 3, 4:
		return []string{n}, m.pick("*"+n+"*", n+"*", "*"+n, n+"/1.0", n+"/*", "("+n+")", "["+n+"]", "\""+n+"\"", n+" *", n+"\t# "+n)
	}
	return []string{n}, n
}

// habitRule returns rules as they are, and as sites write them on one line.
func (m maker) habitRule() (plain []string, written string) {
	field, path := m.pick("Disallow", "Disallow", "Allow"), m.path(true)
	plain = []string{field + ": " + path}
	field = m.pick(field, field, strings.ToLower(field), strings.ToUpper(field), field+"ed", field+" ")
	switch m.IntN(10) {
	case 0:
		// A misspelt field without a colon is one only if there is none in the path either.
		if !strings.HasSuffix(field, "ed") || !strings.Contains(path, ":") {
			return plain, strings.TrimSpace(field) + " " + path
		}
	case 1:
		if len(path) > 1 && path[0] == '/' && strings.IndexByte("*/", path[1]) < 0 {
			return plain, field + ": " + path[1:]
		}
	case 2:
		if path[0] == '/' {
			return plain, field + ": https://site.test" + path
		}
	case 3:
		other := m.path(true)
		for _, p := range []string{path, other} {
			if p[0] != '/' || p != "/" && strings.Trim(p, "/*") == "" || plain[0][0] == 'A' {
				return plain, field + ": " + path
			}
		}
		return append(plain, "Disallow: "+other), field + ": " + path + m.pick(" ", "\t", "  ") + other
	case 4:
		more, line := m.habitRule()
		if strings.Contains(line, ":") && line[:strings.IndexByte(line, ':')] == strings.Split(more[0], ":")[0] {
			return append(plain, more...), field + ": " + path + " " + line
		}
	}
	return plain, field + ":" + m.pick(" ", "", "\t ") + path + m.pick("", "", " # x", " ")
}

// addNames adds a user-agent line, and perhaps a rule that is joined to it.
func (m maker) addNames(h *habitFile) {
	names, written := m.habitName()
	field := m.pick("User-agent", "User-agent", "user-agent", "Useragent", "User agent", "USER-AGENT")
	h.written.WriteString(field + ": " + written)
	last := h.last()
	if m.IntN(6) > 0 || strings.Contains(written, "#") {
		if last == nil || last.rules != nil {
			h.groups, h.before = append(h.groups, habitGroup{}), 0
			last = h.last()
		}
		last.names = append(last.names, names...)
		return
	}
	if last != nil && last.rules == nil {
		h.before = len(h.groups)
	}
	field, path := m.pick("Disallow", "Allow"), m.path(true)
	h.written.WriteString(" " + field + ": " + path)
	h.groups = append(h.groups, habitGroup{names, []string{field + ": " + path}})
}

// addRule adds a line of rules.
func (m maker) addRule(h *habitFile) {
	plain, written := m.habitRule()
	h.written.WriteString(written)
	if len(h.groups) == 0 {
		return
	}
	if h.before > 0 {
		var names []string
		for _, g := range h.groups[h.before-1:] {
			names = append(names, g.names...)
		}
		h.groups, h.before = append(h.groups, habitGroup{names: names}), 0
	}
	h.last().rules = append(h.last().rules, plain...)
}

func (m maker) habits() *habitFile {
	h := &habitFile{}
	h.written.WriteString(m.pick("", "", "\xEF\xBB\xBF", "\xFF\xFE", "\n"))
	for range 1 + m.IntN(10) {
		if m.IntN(3) == 0 {
			m.addNames(h)
		} else {
			m.addRule(h)
		}
		h.written.WriteString(m.pick("\n", "\n", "\r\n", "\r", "\n\n", "\n# x\n", "\nSitemap: https://site.test/s\n"))
	}
	return h
}

// TestHeed_HabitsMeanTheirPlainFile reads files in the habits of real sites, mixed at
// random, and has the naive engine read what they mean in plain lines.
func TestHeed_HabitsMeanTheirPlainFile(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	m := maker{rand.New(rand.NewPCG(seed, 17))}
	for range times(50_000) {
		h := m.habits()
		policy := rules.New(rules.Source{State: rules.Available, Origin: site}, []byte(h.written.String()))
		groups := refParse(h.plain())
		for range 4 {
			header, names := m.agent()
			target := m.path(false)
			got, want := policy.Decide(rules.Identify(header), rules.NewTarget(target)), refDecide(groups, names, refReadings(target))
			if (got.Verdict == rules.Allow) != want.allow {
				t.Fatalf("seed %d: %q asks for %s: engine says %+v, its plain file allow=%v; file:\n%q\nplain:\n%s", seed, header, target, got, want.allow, h.written.String(), h.plain())
			}
		}
	}
}
