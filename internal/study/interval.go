package study

import (
	"slices"

	"heed/internal/figures"
)

// ratio returns the counts that a share is made of; nil when it has no interval.
func (d *Definition) ratio(share string) *Ratio {
	at := slices.IndexFunc(d.Ratios, func(r Ratio) bool { return r.Share == share })
	if at < 0 {
		return nil
	}
	return &d.Ratios[at]
}

// addIntervals adds the two bounds of each ratio to the columns.
func (d *Definition) addIntervals() {
	var list []Column
	for _, c := range d.Columns {
		if list = append(list, c); d.ratio(c.Name) == nil {
			continue
		}
		for _, end := range []struct{ name, word string }{{"low", "Lower"}, {"high", "Upper"}} {
			list = append(list, Column{
				c.Name + "_" + end.name, c.Head + " " + end.name, Bound,
				end.word + " bound of the 95 % interval of " + c.Name + " (Wilson); empty where that is.",
			})
		}
	}
	d.Columns = list
}

// interval returns the bounds of a share as cells; nil for a share that is not defined.
func interval(share, part, of any) []any {
	n, ok := part.(int64)
	all, known := of.(int64)
	if share == nil || !ok || !known || all == 0 {
		return []any{nil, nil}
	}
	low, high := figures.Wilson(n, all)
	return []any{low, high}
}

// intervalWords returns the interval of a share after it; nothing for a share of none.
func intervalWords(part, of int64) string {
	if of == 0 {
		return ""
	}
	low, high := figures.Wilson(part, of)
	return ", 95 % interval " + figures.Interval(low, high)
}
