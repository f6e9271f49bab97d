package audit

import (
	"fmt"
	"strings"
	"time"
)

// Gap is a time in which the record could not be written, so that requests were
// refused without an entry.
type Gap struct {
	From    time.Time `json:"from"`    // of the first refusal
	To      time.Time `json:"to"`      // when the record could be written again, or heed stopped
	Refused int64     `json:"refused"` // requests
	Why     string    `json:"why"`     // the last error
}

// And returns g and a later gap as one. Without refusals it is the other one.
func (g Gap) And(later Gap) Gap {
	switch {
	case g.Refused == 0:
		return later
	case later.Refused == 0:
		return g
	case g.From.Before(later.From):
		later.From = g.From
	}
	later.Refused += g.Refused
	return later
}

// gapPrefix and gapTime are the form of a Gap in the record.
const (
	gapPrefix = "refused from "
	gapTime   = "2006-01-02T15:04:05.000000Z"
)

// Text returns g without Refused, for the record. ParseGap reverses it, to the microsecond.
func (g *Gap) Text() string {
	return gapPrefix + g.From.UTC().Format(gapTime) + " to " + g.To.UTC().Format(gapTime) + ": " + g.Why
}

// ParseGap returns the Gap that Text wrote, with the number of refused requests; ok is
// false for any other text.
func ParseGap(text string, refused int64) (g Gap, ok bool) {
	times, why, _ := strings.Cut(text, ": ")
	times, isGap := strings.CutPrefix(times, gapPrefix)
	from, to, _ := strings.Cut(times, " to ")
	begin, err := time.Parse(gapTime, from)
	end, err2 := time.Parse(gapTime, to)
	if !isGap || err != nil || err2 != nil {
		return Gap{}, false
	}
	return Gap{begin, end, refused, why}, true
}

// String describes g in one line. Its error may contain any characters.
func (g Gap) String() string {
	requests := "requests were"
	if g.Refused == 1 {
		requests = "request was"
	}
	return fmt.Sprintf("from %s to %s the record could not be written, and %d %s refused: %s",
		g.From.UTC().Format(time.RFC3339), g.To.UTC().Format(time.RFC3339), g.Refused, requests, g.Why)
}
