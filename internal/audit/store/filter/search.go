package filter

import (
	"fmt"
	"strings"

	"heed/internal/reason"
)

// Search is a Filter with what needs the outcome of an exchange, too. The zero Search selects all.
type Search struct {
	Filter
	Text   string       // a part of the URL or, in any case, of the User-Agent; empty: all
	Reason string       // of the decision; empty: all
	Class  reason.Class // with ByClass
	// ByClass selects the decisions that are counted as Class, by their last verdict.
	ByClass bool
	Oldest  bool // the first decisions first
}

// Condition returns s as an SQL condition on entry and outcome, joined.
func (s *Search) Condition() string {
	all := []string{s.Filter.Condition()}
	if s.Reason != "" {
		all = append(all, fmt.Sprintf("ground IN (SELECT id FROM ground WHERE reason = %s)", literal(s.Reason)))
	}
	if s.ByClass {
		of := func(failed string) string {
			class := strings.ReplaceAll(reason.InSQL("{{class}}"), "c.failed", failed)
			return fmt.Sprintf("coalesce(late, ground) IN (SELECT g.id FROM ground g WHERE %s = %s)", class, literal(s.Class.String()))
		}
		all = append(all, fmt.Sprintf("CASE WHEN %s THEN %s ELSE %s END", reason.InSQL("{{failed}}"), of("1"), of("0")))
	}
	if s.Text != "" {
		all = append(all, s.text())
	}
	return strings.Join(all, " AND ")
}

// text returns the condition that Text makes.
func (s *Search) text() string {
	text := literal(s.Text)
	found := []string{
		fmt.Sprintf("instr(target, x'%x') > 0", s.Text),
		fmt.Sprintf("site IN (SELECT id FROM site WHERE instr(host, lower(%s)) > 0)", text),
		fmt.Sprintf("asker IN (SELECT id FROM asker WHERE instr(lower(user_agent), lower(%s)) > 0)", text),
	}
	return "(" + strings.Join(found, " OR ") + ")"
}
