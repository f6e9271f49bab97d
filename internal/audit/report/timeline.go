package report

import (
	"time"

	"heed/internal/audit/store"
	"heed/internal/judge/reason"
	"heed/internal/output/figures"
)

// Period is what was asked in a part of the time.
type Period struct {
	From        time.Time `json:"from"`
	Allowed     int64     `json:"allowed"`
	Refused     int64     `json:"refused"`
	WouldRefuse int64     `json:"would_refuse"`
	NotJudged   int64     `json:"not_judged"`

	Classes reason.Counts `json:"classes"`
}

// mostPeriods bounds the periods of a report.
const mostPeriods = 96

// timeline counts by time.
type timeline struct {
	from, to int64 // microseconds; from > to, as before cover: nothing to count
	width    int64
	periods  []Period
}

// cover extends the line to the decisions of f that q selects.
func (l *timeline) cover(f *store.File, q *Query) {
	if f.Decisions == 0 {
		return
	}
	from, to := q.window()
	if from, to = max(f.First.UnixMicro(), from), min(f.Last.UnixMicro(), to-1); from > to {
		return
	}
	l.from, l.to = min(l.from, from), max(l.to, to)
}

// begin chooses the periods.
func (l *timeline) begin() {
	if l.from > l.to {
		return
	}
	l.width = figures.Period(l.to-l.from, 1, mostPeriods-1)
	l.from -= ((l.from % l.width) + l.width) % l.width
	for i := range (l.to-l.from)/l.width + 1 {
		l.periods = append(l.periods, Period{From: moment(l.from + i*l.width)})
	}
}

func (l *timeline) add(at int64, result int, class reason.Class) {
	if i := (at - l.from) / l.width; i >= 0 && i < int64(len(l.periods)) {
		p := &l.periods[i]
		*[...]*int64{&p.Allowed, &p.Refused, &p.WouldRefuse, &p.NotJudged}[result]++
		p.Classes[class]++
	}
}
