package report

import "time"

// column is a period of the chart over time.
type column struct {
	At, Width float64
	When      string
	All       int64
	Pieces    []piece
}

// chart is the requests over time.
type chart struct {
	Columns           []column
	Top               int64 // what the upper line stands for
	From, Middle, End string
	Each              string // how long a period is
}

// Chart draws the periods; nil when there is nothing to see in it.
func (p *page) Chart() *chart {
	if len(p.Periods) < 2 {
		return nil
	}
	var most int64 = 1
	for i := range p.Periods {
		most = max(most, p.Periods[i].All())
	}
	each := time.Duration(p.PeriodSeconds * float64(time.Second))
	c := &chart{Top: ceiling(most), Each: unit(each)}
	form := "2 Jan 2006 15:04"
	switch {
	case each < time.Minute:
		form = "2 Jan 15:04:05"
	case each >= 24*time.Hour:
		form = "2 Jan 2006"
	}
	last := p.Periods[len(p.Periods)-1].From.Add(each)
	c.From, c.End = p.Periods[0].From.Format(form), last.Format(form)
	c.Middle = p.Periods[0].From.Add(last.Sub(p.Periods[0].From) / 2).Format(form)
	width := 100 / float64(len(p.Periods))
	for i := range p.Periods {
		d := &p.Periods[i]
		if d.All() == 0 {
			continue
		}
		c.Columns = append(c.Columns, column{
			At: round(float64(i)*width + width*0.06), Width: round(width * 0.88), When: d.From.Format(form), All: d.All(),
			Pieces: pieces([classes]int64{d.Allowed, d.Refused, d.WouldRefuse, d.NotJudged}, c.Top),
		})
	}
	return c
}

// Down is where a piece of a column begins, from above.
func (p piece) Down() float64 { return round(100 - p.At - p.Size) }

// ceiling returns the next even number of one digit and zeros, for an axis.
func ceiling(n int64) int64 {
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
