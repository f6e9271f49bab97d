package reason

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"heed/rules"
)

// Class is where a decision is counted. The zero value is NotJudged.
type Class uint8

// The classes.
const (
	NotJudged          Class = iota // no verdict on the URL by rules or settings
	Allowed                         // forwarded
	RefusedByRule                   // the site's rules refuse it
	RefusedByStatement              // a statement of the site on the use of its pages refuses it
	RefusedByOperator               // the settings refuse it
	RulesUnavailable                // the site's rules could not be read
	Postponed                       // a later request can be served
	Failed                          // the site was not reached, or heed failed

	classes = iota
)

// Classes returns all classes in the order in which they are printed.
func Classes() []Class {
	return []Class{Allowed, RefusedByRule, RefusedByStatement, RefusedByOperator, RulesUnavailable, Postponed, Failed, NotJudged}
}

// WouldBeClasses returns the classes that a refusal can have, in the order of Classes.
func WouldBeClasses() []Class {
	return []Class{RefusedByRule, RefusedByStatement, RefusedByOperator, RulesUnavailable, Postponed, Failed}
}

// String returns the name of the class.
func (c Class) String() string {
	return [...]string{"not judged", "allowed", "refused by rule", "refused by statement", "refused by the operator", "rules unavailable", "postponed", "failed"}[c]
}

// Sentence explains the class.
func (c Class) Sentence() string {
	return [...]string{
		"Neither the site's rules nor the settings gave a verdict on the URL.",
		"The request was forwarded.",
		"A rule of the site's robots.txt does not allow the URL.",
		"The rules allow the URL, and a statement of the site does not allow the use that the client states.",
		"The settings do not allow the request.",
		"The site's robots.txt could not be read or judged by, and nothing may be fetched while its rules are unknown.",
		"The request is to be sent again later: its turn was too far off, or a limit was reached.",
		"The site was not reached or did not answer, or heed could not record or process the request.",
	}[c]
}

// Key returns the name of the class in JSON and in the columns of tables, such as
// refused_by_operator.
func (c Class) Key() string {
	return strings.ReplaceAll(strings.ReplaceAll(c.String(), " the ", " "), " ", "_")
}

// FailedStatuses are the statuses of heed's own answers to an allowed request that
// make it count as Failed: the site was not reached (502, 504), heed had a fault (500), or
// another record of the same decision could not be written (503).
var FailedStatuses = [...]int{http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}

// FailedStatus reports whether status is one of FailedStatuses.
func FailedStatus(status int) bool { return slices.Contains(FailedStatuses[:], status) }

// Counts are numbers of requests by class. In JSON they are an object with a member
// for each Class.Key.
type Counts [classes]int64

// Add adds o to c.
func (c *Counts) Add(o *Counts) {
	for i := range c {
		c[i] += o[i]
	}
}

// Sum returns the number of requests.
func (c *Counts) Sum() (n int64) {
	for _, k := range c {
		n += k
	}
	return n
}

// MarshalJSON implements json.Marshaler.
func (c Counts) MarshalJSON() ([]byte, error) {
	text := []byte{'{'}
	for i, class := range Classes() {
		if i > 0 {
			text = append(text, ',')
		}
		text = fmt.Appendf(text, "%q:%d", class.Key(), c[class])
	}
	return append(text, '}'), nil
}

// UnmarshalJSON implements json.Unmarshaler. Members that are no class are ignored.
func (c *Counts) UnmarshalJSON(text []byte) error {
	var members map[string]int64
	if err := json.Unmarshal(text, &members); err != nil {
		return err
	}
	for _, class := range Classes() {
		c[class] = members[class.Key()]
	}
	return nil
}

// Words returns the numbers in words, such as "6 allowed, 8 refused by rule", with
// each number as format returns it. Allowed and RefusedByRule are always included, the
// other classes when they have requests.
func (c *Counts) Words(format func(int64) string) string {
	return c.words(format, Allowed, RefusedByRule)
}

// OnlyWords is Words without the classes that have no requests: empty when c has none.
func (c *Counts) OnlyWords(format func(int64) string) string { return c.words(format) }

func (c *Counts) words(format func(int64) string, always ...Class) string {
	var parts []string
	for _, class := range Classes() {
		if c[class] != 0 || slices.Contains(always, class) {
			parts = append(parts, format(c[class])+" "+class.String())
		}
	}
	return strings.Join(parts, ", ")
}

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
