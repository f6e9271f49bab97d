package report

import "time"

// Period is what was asked in a part of the time.
type Period struct {
	From        time.Time `json:"from"`
	Allowed     int64     `json:"allowed"`
	Refused     int64     `json:"refused"`
	WouldRefuse int64     `json:"would_refuse"`
	NotJudged   int64     `json:"not_judged"`
}

// All returns the requests of the period.
func (p *Period) All() int64 { return p.Allowed + p.Refused + p.WouldRefuse + p.NotJudged }

// most periods are told: what a narrow screen can show.
const mostPeriods = 96

// widths are the periods that people count in.
var widths = [...]time.Duration{
	time.Second, 5 * time.Second, 15 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 3 * time.Hour, 6 * time.Hour,
	24 * time.Hour, 7 * 24 * time.Hour, 28 * 24 * time.Hour, 364 * 24 * time.Hour,
}

// timeline counts by time.
type timeline struct {
	from, to int64 // microseconds; from > to: nothing to count
	any      bool
	width    int64
	counts   [][classes]int64
}

// cover has the line reach over x, as far as the query goes.
func (l *timeline) cover(x extent, q *Query) {
	if x.n == 0 {
		return
	}
	from, to := q.window()
	from, to = max(x.from, from), min(x.to, to-1)
	if from > to {
		return
	}
	if !l.any || from < l.from {
		l.from = from
	}
	if !l.any || to > l.to {
		l.to = to
	}
	l.any = true
}

// begin chooses the periods.
func (l *timeline) begin() {
	if !l.any {
		return
	}
	for _, w := range widths {
		l.width = w.Microseconds()
		if (l.to-l.from)/l.width < mostPeriods-1 {
			break
		}
	}
	l.width = max(l.width, (l.to-l.from)/(mostPeriods-1)) // clocks may be set to any time
	l.from -= ((l.from % l.width) + l.width) % l.width
	l.counts = make([][classes]int64, (l.to-l.from)/l.width+1)
}

func (l *timeline) add(at int64, c class) {
	if i := (at - l.from) / l.width; i >= 0 && i < int64(len(l.counts)) {
		l.counts[i][c]++
	}
}

// periods returns the line.
func (l *timeline) periods() []Period {
	list := make([]Period, len(l.counts))
	for i, c := range l.counts {
		list[i] = Period{micros(l.from + int64(i)*l.width), c[classAllowed], c[classRefused], c[classWouldRefuse], c[classNotJudged]}
	}
	return list
}
