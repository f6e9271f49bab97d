package dashboard

import (
	"cmp"
	"errors"
	"net/http"
	"strings"

	"heed/internal/audit/replay"
	"heed/internal/check/why"
	"heed/internal/config"
	"heed/rules"
)

// decisionPage is what the page of one decision shows.
type decisionPage struct {
	*replay.Explained
	Row    row
	Agent  []piece // the User-Agent that was judged; nil: no piece of it led to a group
	Steps  []why.Step
	Robots *excerpt // nil: there is none
}

// piece is a part of a text.
type piece struct {
	Text string
	Mark bool // the part that matched
}

func (d *Dashboard) decision(r *http.Request) (*view, error) {
	t, err := d.explained(r)
	if err != nil {
		return nil, err
	}
	p := &decisionPage{Explained: t, Row: rowOf(t.Decision), Agent: agentPieces(t), Steps: why.Recorded(t, nil, why.Words)}
	if t.Robots != nil {
		p.Robots = excerptOf(t.Robots, t.RobotsLine)
	}
	return &view{Page: "decision", Title: "Decision " + t.ID, Data: p}, nil
}

// explained returns the decision that the path of r names.
func (d *Dashboard) explained(r *http.Request) (*replay.Explained, error) {
	id, ok := decisionID(r.PathValue("id"))
	if !ok {
		return nil, &shownError{http.StatusNotFound, "That is not the id of a decision.\nIt has 32 hexadecimal digits; search for a URL or an agent on the page of decisions."}
	}
	record, release, err := d.record.acquire(r.Context())
	if err != nil {
		return nil, err
	}
	defer release()
	t, err := replay.ExplainID(r.Context(), record, config.RecordedRules, id)
	if errors.Is(err, replay.ErrNone) {
		return nil, &shownError{http.StatusNotFound, "The record has no decision with this id.\nIt may be too old ([audit] keep), or not be recorded yet: load the page again in a moment."}
	}
	return t, err
}

// decisionRobots sends the robots.txt that a decision rests on, as it was received.
func (d *Dashboard) decisionRobots(w http.ResponseWriter, r *http.Request) {
	t, err := d.explained(r)
	if err == nil && t.Robots == nil {
		err = &shownError{http.StatusNotFound, "The decision rests on no robots.txt."}
	}
	if err != nil {
		d.serve(w, r, func(*http.Request) (*view, error) { return nil, err })
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="robots.txt"`)
	_, _ = w.Write(t.Robots) // the client may have left
}

// agentPieces returns the User-Agent that was judged, with the piece marked that led to the
// group of the decision; nil: none did.
func agentPieces(t *replay.Explained) []piece {
	agent := cmp.Or(t.Sent, t.UserAgent)
	if t.Road == nil || t.Token == "" {
		return nil
	}
	for _, token := range t.Road.Tokens {
		if before, after, found := strings.Cut(agent, token.Piece); found && token.Name == t.Token {
			return []piece{{before, false}, {token.Piece, true}, {after, false}}
		}
	}
	return nil
}

// excerpt is a robots.txt, or the part of it around a line.
type excerpt struct {
	Lines         []textLine
	Before, After int // lines that are left out
	Bytes         int
}

type textLine struct {
	Number  int
	Text    string
	Decided bool
}

// Bounds of what is shown of a robots.txt.
const (
	linesAround = 150
	lineShown   = 2000 // octets of one line
)

// excerptOf returns the lines around the one that decided, or the first ones when that is 0.
func excerptOf(text []byte, decided int) *excerpt {
	x := &excerpt{Bytes: len(text)}
	first, last := max(1, decided-linesAround), max(decided, linesAround)+linesAround
	for n, line := range rules.Lines(string(text)) {
		switch {
		case n < first:
			x.Before++
		case n > last:
			x.After++
		default:
			shown := line[:min(len(line), lineShown)]
			if len(line) > lineShown {
				shown += " ..."
			}
			x.Lines = append(x.Lines, textLine{n, strings.ToValidUTF8(shown, "\uFFFD"), n == decided})
		}
	}
	return x
}
