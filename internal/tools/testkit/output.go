package testkit

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"
	"time"
)

// Record is one line of heed's JSON log.
type Record map[string]any

// Text is a member as text; empty when there is none.
func (r Record) Text(member string) string {
	text, _ := r[member].(string)
	return text
}

// Number is a member as a number; 0 when there is none.
func (r Record) Number(member string) int {
	number, _ := r[member].(float64)
	return int(number)
}

// Records are the log lines so far.
func (h *Heed) Records() []Record {
	all, _ := h.out.records()
	return all
}

// Await waits for a log line that fits and returns it.
func (h *Heed) Await(what string, fits func(Record) bool) Record {
	h.t.Helper()
	late := time.After(Patience)
	for seen := 0; ; {
		all, more := h.out.records()
		for ; seen < len(all); seen++ {
			if fits(all[seen]) {
				return all[seen]
			}
		}
		select {
		case <-more:
		case <-late:
			h.t.Fatalf("no log line %s in:\n%s", what, h.Stderr())
		}
	}
}

// AwaitURL waits for the decision on a URL.
func (h *Heed) AwaitURL(url string) Record {
	h.t.Helper()
	return h.Await("of "+url, func(r Record) bool { return r.Text("url") == url })
}

// AwaitText waits until heed has printed text. A decision is logged after its answer has
// been sent, so that who has read the answer cannot expect the line to be there.
func (h *Heed) AwaitText(text string) {
	h.t.Helper()
	late := time.After(Patience)
	for {
		_, more := h.out.records()
		if strings.Contains(h.Stderr(), text) {
			return
		}
		select {
		case <-more:
		case <-late:
			h.t.Fatalf("heed has not printed %q:\n%s", text, h.Stderr())
		}
	}
}

// output takes a child's stderr apart: its text, its log lines, and the
// address in the first line that has one.
type output struct {
	addr chan string         // receives once
	each func(record []byte) // takes the log lines; nil: they are kept

	mu    sync.Mutex
	all   bytes.Buffer
	line  []byte // begun and not ended
	found bool   // addr was sent
	log   []Record
	more  chan struct{} // closed and replaced at every new line
}

func newOutput() *output {
	return &output{addr: make(chan string, 1), more: make(chan struct{})}
}

// Write never fails.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for part := range bytes.Lines(p) {
		o.line = append(o.line, part...)
		if bytes.HasSuffix(part, []byte("\n")) {
			o.takeLocked(string(o.line))
			o.line = o.line[:0]
		}
	}
	return len(p), nil
}

func (o *output) takeLocked(line string) {
	if o.each != nil && line[0] == '{' {
		o.each(o.line)
		return
	}
	o.all.WriteString(line)
	var record Record
	close(o.more)
	o.more = make(chan struct{})
	if strings.HasPrefix(line, "{") && json.Unmarshal([]byte(line), &record) == nil {
		o.log = append(o.log, record)
		return
	}
	if addr := listensAt.FindString(line); addr != "" && !o.found {
		o.found = true
		o.addr <- addr
	}
}

func (o *output) text() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.String() + string(o.line)
}

// records are the lines so far and a channel that is closed when there are more.
func (o *output) records() ([]Record, <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]Record(nil), o.log...), o.more
}
