package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Problem is a number of lines or entries that name no page, for one reason.
type Problem struct {
	Reason string   `json:"reason"`
	Count  int64    `json:"count"`
	Places []string `json:"places"` // the first of them, such as FILE:LINE
}

// Problems counts what could not be used. The zero value is empty.
type Problems struct{ List []*Problem }

// Bounds of what is kept of problems.
const (
	maxReasons = 50 // different ones; others are counted together
	maxPlaces  = 3
	maxReason  = 200 // octets of one
)

// Add counts a problem at a place. What the reason repeats of the text is left out.
func (p *Problems) Add(place, text, reason string) {
	reason = strings.TrimPrefix(reason, strconv.Quote(text)+" ")
	if len(reason) > maxReason {
		reason = reason[:maxReason] + "..."
	}
	p.merge(&Problem{reason, 1, []string{place}})
}

// Merge adds the problems of others.
func (p *Problems) Merge(others *Problems) {
	for _, o := range others.List {
		p.merge(o)
	}
}

func (p *Problems) merge(o *Problem) {
	const others = "other reasons" // the last of a full list
	at := slices.IndexFunc(p.List, func(is *Problem) bool { return is.Reason == o.Reason || is.Reason == others })
	if at < 0 {
		at = len(p.List)
		p.List = append(p.List, &Problem{Reason: o.Reason})
	}
	to := p.List[at]
	if at == maxReasons {
		to.Reason = others
	}
	to.Count += o.Count
	to.Places = append(to.Places, o.Places[:min(len(o.Places), maxPlaces-len(to.Places))]...)
}

// place names a line of a list.
func place(name string, line int64) string { return fmt.Sprintf("%s:%d", name, line) }
