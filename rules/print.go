package rules

import "strings"

// String returns what the policy says as a robots.txt in canonical form: one
// name or rule on a line, paths as they are compared, nothing that has no
// meaning. Read under the same profile it gives the same decisions. It is
// empty when there are no rules to ask. Values of fields that rules ignores
// are the site's own text.
func (p *Policy) String() string {
	if p.engine == nil {
		return ""
	}
	e := p.engine
	names := make([][]string, len(e.groups))
	for i, n := range e.names {
		names[n.group] = append(names[n.group], strings.ToLower(e.nameText(i)))
	}
	var b strings.Builder
	e.printFields(&b, 0)
	for g := range e.groups {
		if len(names[g]) == 0 {
			continue // nobody's
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		for _, name := range names[g] {
			b.WriteString("User-agent: " + name + "\n")
		}
		e.printFields(&b, uint32(g)+1)
		e.printRules(&b, uint32(g))
	}
	return b.String()
}

// printRules prints the rules of a group, each once; an empty one keeps the group
// apart from the next.
func (e *engine) printRules(b *strings.Builder, group uint32) {
	from, to := e.groups[group], e.groupEnd(group)
	if from == to {
		b.WriteString("Disallow:\n")
	}
	printed := make(map[string]bool, to-from)
	for id := from; id < to; id++ {
		r := &e.rules[id]
		field := "Disallow: "
		if r.allows() {
			field = "Allow: "
		}
		if line := field + e.canonical(r) + "\n"; !printed[line] {
			printed[line] = true
			b.WriteString(line)
		}
	}
}

func (e *engine) printFields(b *strings.Builder, group uint32) {
	for i, f := range e.fields {
		if f.group == group {
			b.WriteString(f.kind.String() + ": " + e.field(i, nil).Value + "\n")
		}
	}
}

// canonical returns a rule's path in the canonical form of RFC 9309 §2.2.2.
func (e *engine) canonical(r *rule) string {
	pattern := e.pattern(r)
	dst := make([]byte, 0, len(pattern)+1)
	for i := 0; i < len(pattern); i++ {
		c := pattern[i]
		switch {
		case r.line&ruleWild != 0 && c == r.separator():
			dst = append(dst, '*')
			continue
		case e.asSent:
			dst = append(dst, c)
			continue
		case c == '/' || c == '?' || c == '&' || c == '=' || unreserved[c]:
			dst = append(dst, c)
			continue
		case c == codeLead:
			c = codeFirst + (pattern[i+1]-codeTrail)<<2 + (pattern[i+2] - codeTrail)
			i += 2
		case c >= codeFirst:
			c = "/?&="[c-codeSlash]
		}
		dst = append(dst, '%', hexDigits[c>>4], hexDigits[c&15])
	}
	if r.line&ruleEnds != 0 {
		dst = append(dst, '$')
	}
	return string(dst)
}
