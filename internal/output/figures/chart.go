package figures

import "time"

// Chart is numbers over time, as columns.
type Chart struct {
	Columns           []Column // of periods that have any
	Busiest           Column
	Key               []Piece // the styles that occur
	Top               int64   // the value of the upper line
	From, Middle, End string
	Each              string // how long a period is
}

// Column is a period of a Chart.
type Column struct {
	At, Width float64 // in percent
	When      string
	All       int64
	Pieces    []Piece
}

// NewChart draws periods of equal length that follow one another, at least one. Each has the same
// parts, in the same order. Their times are written in form; empty: as their length needs it.
func NewChart(from time.Time, each time.Duration, form string, periods [][]Part) *Chart {
	switch {
	case form != "":
	case each < time.Minute:
		form = "2 Jan 15:04:05"
	case each < 24*time.Hour:
		form = "2 Jan 2006 15:04"
	default:
		form = "2 Jan 2006"
	}
	end := from.Add(time.Duration(len(periods)) * each)
	c := &Chart{From: from.Format(form), Middle: from.Add(end.Sub(from) / 2).Format(form), End: end.Format(form), Each: unit(each)}
	width := 100 / float64(len(periods))
	drawn := make([]Column, len(periods))
	for i, parts := range periods {
		col := &drawn[i]
		*col = Column{At: Round(float64(i)*width + width*0.06), Width: Round(width * 0.88), When: from.Add(time.Duration(i) * each).Format(form)}
		for _, p := range parts {
			col.All += p.N
		}
		if col.All > c.Busiest.All {
			c.Busiest = *col
		}
	}
	c.Top, c.Key = Ceiling(max(1, c.Busiest.All)), key(periods)
	for i, col := range drawn {
		if col.All > 0 {
			col.Pieces = Bar(periods[i], c.Top)
			c.Columns = append(c.Columns, col)
		}
	}
	return c
}

// lengths are those of the periods that people count in.
var lengths = [...]time.Duration{
	time.Second, 5 * time.Second, 15 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 3 * time.Hour, 6 * time.Hour,
	24 * time.Hour, 7 * 24 * time.Hour, 28 * 24 * time.Hour, 364 * 24 * time.Hour,
}

// Period returns the length of the shortest periods that people count in, not shorter than
// least, of which most cover a time: all in microseconds. Clocks may be set to any time: when
// there is none, it is the longer of least and the part of the time.
func Period(span, least, most int64) int64 {
	for _, d := range lengths {
		if length := d.Microseconds(); length >= least && span/length < most {
			return length
		}
	}
	return max(least, span/most)
}

// key returns the styles of the parts that occur; those of one style are together.
func key(periods [][]Part) (list []Piece) {
	for k, p := range periods[0] {
		n := int64(0)
		for _, parts := range periods {
			n += parts[k].N
		}
		last := len(list) - 1
		switch {
		case n == 0:
		case last >= 0 && list[last].Class == p.Style:
			list[last].Name += ", " + p.Name
		default:
			list = append(list, Piece{Class: p.Style, Name: p.Name})
		}
	}
	return list
}

// unit writes how long a period is: the lengths are whole units of people.
func unit(d time.Duration) string {
	for _, u := range []struct {
		of   time.Duration
		name string
	}{{24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"}} {
		if n := int64(d / u.of); n > 0 && d%u.of == 0 {
			return Number(n, u.name)
		}
	}
	return d.String()
}
