package reason

import (
	"fmt"
	"strings"

	"heed/rules"
)

// InSQL replaces, in a query of a record, {{class}} and {{would_be}} by expressions for
// ClassOf and WouldBe: g is the request's row of the table ground, and c.failed has the
// value of {{failed}} for its row of the view standing. {{classes}} is replaced by a
// column for each class, over rows with the columns requests, class and would_be.
func InSQL(query string) string {
	var columns []string
	for _, c := range Classes() {
		columns = append(columns, fmt.Sprintf("sum(c.requests * (c.class = '%s')) AS class_%s", c, c.Key()))
	}
	for _, c := range WouldBeClasses() {
		columns = append(columns, fmt.Sprintf("sum(c.requests * (c.would_be IS '%s')) AS would_be_%s", c, c.Key()))
	}
	whenRefused := ""
	for _, c := range Classes() {
		if c != NotJudged && c != Allowed && c != Failed { // Failed has all others
			whenRefused += fmt.Sprintf("\n        WHEN g.reason IN (%s) THEN '%s'", classReasons(rules.Refuse, c), c)
		}
	}
	whenRefused += fmt.Sprintf("\n        ELSE '%s' END", Failed)
	notJudged := fmt.Sprintf("g.reason IN (%s)", classReasons(rules.Refuse, NotJudged))
	return strings.NewReplacer(
		"{{failed}}", fmt.Sprintf("coalesce(from_site = 0 AND status IN (%s), 0)", strings.Trim(strings.ReplaceAll(fmt.Sprint(FailedStatuses), " ", ", "), "[]")),
		"{{class}}", fmt.Sprintf("CASE WHEN %s OR (g.verdict = 'allow' AND g.reason IN (%s)) THEN '%s'\n        WHEN g.verdict <> 'refuse' THEN CASE WHEN c.failed THEN '%s' ELSE '%s' END",
			notJudged, classReasons(rules.Allow, NotJudged), NotJudged, Failed, Allowed)+whenRefused,
		"{{would_be}}", fmt.Sprintf("CASE WHEN g.verdict <> 'would-refuse' OR %s THEN NULL", notJudged)+whenRefused,
		"{{classes}}", strings.Join(columns, ",\n    "),
	).Replace(query)
}

// classReasons returns the reasons that a verdict puts into a class, as SQL literals.
func classReasons(v rules.Verdict, c Class) string {
	var all []string
	for _, info := range All() {
		if ClassOf(v, info.Reason, false) == c {
			all = append(all, "'"+string(info.Reason)+"'")
		}
	}
	return strings.Join(all, ", ")
}
