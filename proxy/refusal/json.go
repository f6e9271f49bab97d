package refusal

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// text returns p as an Encoder of encoding/json with an indentation of two spaces
// writes it. The Encoder itself takes eight times as long, most of it to read again
// what it has written.
func (p *Problem) text() []byte {
	o := object{b: make([]byte, 0, 1<<10)}
	o.begin()
	o.text("title", p.Title)
	o.text("type", p.Type)
	o.number("status", int64(p.Status))
	o.text("detail", p.Detail)
	o.text("reason", p.Reason)
	o.text("retry", p.Retry)
	o.numberIfAny("retry_after", p.RetryAfter)
	o.textIfAny("url", p.URL)
	o.textIfAny("robots_url", p.RobotsURL)
	o.numberIfAny("line", p.Line)
	if p.Quoted != nil {
		o.name("quoted_from_site")
		o.begin()
		o.textIfAny("rule", p.Quoted.Rule)
		o.textIfAny("group", p.Quoted.Group)
		o.end()
	}
	o.textIfAny("product_token", p.Token)
	o.textIfAny("user_agent_piece", p.Piece)
	if p.Queue != nil {
		queue, _ := json.MarshalIndent(p.Queue, "  ", "  ") // finite numbers cannot fail
		o.name("queue")
		o.b = append(o.b, queue...)
	}
	o.textIfAny("purpose", p.Purpose)
	o.textIfAny("statement_url", p.Statement)
	if p.PolicyAge != nil {
		o.number("policy_age_seconds", *p.PolicyAge)
	}
	o.textIfAny("fetched_at", p.FetchedAt)
	o.text("decision_id", p.DecisionID)
	o.end()
	return append(o.b, '\n')
}

// object is JSON that is being written to b: an object, and the one in it that is open.
type object struct {
	b    []byte
	open int // objects, 2 at most
}

func (o *object) begin() {
	o.b = append(o.b, '{')
	o.open++
}

func (o *object) end() {
	o.open--
	if o.b[len(o.b)-1] != '{' {
		o.newLine()
	}
	o.b = append(o.b, '}')
}

func (o *object) newLine() { o.b = append(o.b, "\n    "[:1+2*o.open]...) }

// name begins a member. Its value comes next.
func (o *object) name(name string) {
	if o.b[len(o.b)-1] != '{' {
		o.b = append(o.b, ',')
	}
	o.newLine()
	o.b = append(o.b, '"')
	o.b = append(o.b, name...)
	o.b = append(o.b, `": `...)
}

func (o *object) number(name string, value int64) {
	o.name(name)
	o.b = strconv.AppendInt(o.b, value, 10)
}

func (o *object) numberIfAny(name string, value int) {
	if value != 0 {
		o.number(name, int64(value))
	}
}

func (o *object) text(name, value string) {
	o.name(name)
	for i := range len(value) {
		if !plain[value[i]] {
			var escaped bytes.Buffer
			e := json.NewEncoder(&escaped)
			e.SetEscapeHTML(false) // "<" is itself: the body is no HTML
			_ = e.Encode(value)    // a string cannot fail
			o.b = append(o.b, bytes.TrimSuffix(escaped.Bytes(), []byte("\n"))...)
			return
		}
	}
	o.b = append(o.b, '"')
	o.b = append(o.b, value...)
	o.b = append(o.b, '"')
}

func (o *object) textIfAny(name, value string) {
	if value != "" {
		o.text(name, value)
	}
}

// plain has the octets that are themselves in a string of JSON.
var plain = func() (plain [256]bool) {
	for c := ' '; c <= '~'; c++ {
		plain[c] = c != '"' && c != '\\'
	}
	return plain
}()
