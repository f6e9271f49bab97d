package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"heed/internal/figures"
	"heed/internal/reason"
	"heed/internal/safetext"
	"heed/rules"
)

// words returns the phrase for a reason of a record.
func words(r string) string { return safetext.Visible(reason.Of(rules.Reason(r)).Words) }

// Words says what became of the requests.
func (c *Counts) Words() string { return c.Classes.Words(figures.Commas) }

// Observed says what became of those that were only observed; empty: none was.
func (c *Counts) Observed() string {
	words := c.WouldBe.OnlyWords(figures.Commas)
	if words == "" {
		return ""
	}
	return figures.Number(c.WouldBe.Sum(), "request") + ", which would be: " + words
}

// coverage says by what the requests were judged.
func (c *Counts) coverage() string {
	path := c.Requests - c.NotJudged - c.ByHost
	if c.NotJudged+c.ByHost == 0 {
		return "all judged by their path"
	}
	text := figures.Percent(path, c.Requests) + " judged by their path"
	if c.ByHost > 0 {
		text += ", " + figures.Percent(c.ByHost, c.Requests) + " by their host alone"
	}
	if c.NotJudged > 0 {
		text += "; " + figures.Percent(c.NotJudged, c.Requests) + " could not be judged at all"
	}
	return text
}

// engines names the rules engines with these numbers.
func engines(numbers []int64) string {
	text := make([]string, len(numbers))
	for i, n := range numbers {
		text[i] = strconv.FormatInt(n, 10)
	}
	return enginesNamed(text)
}

func enginesNamed(numbers []string) string {
	if len(numbers) == 1 {
		return "rules engine " + numbers[0]
	}
	return "rules engines " + strings.Join(numbers, ", ")
}

// columns returns the classes that have a column in tables: allowed and refused by rule, and
// others that have requests.
func (c *Counts) columns() []reason.Class {
	return slices.DeleteFunc(reason.Classes(), func(k reason.Class) bool {
		return c.Classes[k] == 0 && k != reason.Allowed && k != reason.RefusedByRule
	})
}

// Waits says how long requests waited.
func (c *Counts) Waits() string {
	return fmt.Sprintf("%s, %s in all, at most %s", figures.Number(c.Waited, "request"), span(c.WaitedTotal), span(c.WaitedMost))
}
