// Package figures computes, draws and words numbers of requests, in the same way in reports, in
// studies and on the dashboard: percentiles, intervals of shares and the fastest minute; bars by
// class, with a pattern beside each colour; and numbers with commas.
package figures

import (
	"math"
	"strconv"

	"heed/internal/judge/reason"
)

// Piece is a rectangle of a bar or a column, in percent.
type Piece struct {
	Class    string
	At, Size float64
	Name     string
	N        int64
}

// styles are the names of the classes in style sheets, and of their patterns: each class has
// one beside its colour.
var styles = map[reason.Class]string{
	reason.Allowed: "allowed", reason.RefusedByRule: "rule", reason.RefusedByStatement: "statement", reason.RefusedByOperator: "operator", reason.RulesUnavailable: "unavailable",
	reason.Postponed: "postponed", reason.Failed: "failed", reason.NotJudged: "unjudged",
}

// Style returns the name of a class in style sheets.
func Style(c reason.Class) string { return styles[c] }

// Part is a number that is drawn, in the style of a class of style sheets.
type Part struct {
	Style, Name string
	N           int64
}

// Parts returns all counts, as they are drawn.
func Parts(counts *reason.Counts) []Part {
	var list []Part
	for _, k := range reason.Classes() {
		list = append(list, Part{Style(k), k.String(), counts[k]})
	}
	return list
}

// Pieces returns counts as parts of a bar that is as long as most.
func Pieces(counts *reason.Counts, most int64) []Piece { return Bar(Parts(counts), most) }

// Bar returns parts as pieces of a bar that is as long as most. Those of 0 have none.
func Bar(parts []Part, most int64) []Piece {
	var list []Piece
	at := 0.0
	for _, p := range parts {
		if p.N == 0 || most <= 0 {
			continue
		}
		size := 100 * float64(p.N) / float64(most)
		list = append(list, Piece{p.Style, Round(at), Round(size), p.Name, p.N})
		at += size
	}
	return list
}

// Down is where a piece of a column begins, from above.
func (p Piece) Down() float64 { return Round(100 - p.At - p.Size) }

// Ceiling returns the next even number of one digit and zeros, for an axis.
func Ceiling(n int64) int64 {
	unit := int64(1)
	for n > 10*unit {
		unit *= 10
	}
	for _, k := range []int64{1, 2, 4, 6, 8, 10} {
		if k*unit >= n {
			return max(2, k*unit)
		}
	}
	return n
}

// Round returns f with three decimals.
func Round(f float64) float64 { return math.Round(f*1000) / 1000 }

// Percent writes n of all. What is not all, or not none, never looks as if it were.
func Percent(n, all int64) string {
	if all == 0 {
		return "-"
	}
	switch p := 100 * float64(n) / float64(all); {
	case n == 0:
		return "0 %"
	case n == all:
		return "100 %"
	case p < 0.1:
		return "< 0.1 %"
	case p > 99.9:
		return "> 99.9 %"
	default:
		return strconv.FormatFloat(p, 'f', 1, 64) + " %"
	}
}

// Interval writes the bounds of an interval of shares, in percent.
func Interval(low, high float64) string {
	return strconv.FormatFloat(100*low, 'f', 1, 64) + "-" + strconv.FormatFloat(100*high, 'f', 1, 64)
}

// Size writes a number of octets, rounded.
func Size(octets int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	size, i := float64(octets), 0
	for ; size >= 1000 && i < len(units)-1; i++ {
		size /= 1024
	}
	digits := 1
	if i == 0 || size >= 100 {
		digits = 0
	}
	return strconv.FormatFloat(size, 'f', digits, 64) + " " + units[i]
}

// Number writes how many of something there are.
func Number(n int64, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return Commas(n) + " " + one + "s"
}

// Commas writes a number with a comma between thousands.
func Commas(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
