package check

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"runtime"
	"slices"
	"sync/atomic"

	"heed/internal/base/safetext"
	"heed/internal/control"
	"heed/internal/judge/acl"
	"heed/internal/output/console"
	"heed/rules"
)

const (
	maxLine   = 64 << 20 // octets of a line of a batch
	batchSize = 128      // most lines that are judged together
)

// batch answers the questions on stdin, one per line, in their order.
func (c *CheckCmd) batch(a *console.App, fallback judgeFunc) error {
	profile, _ := rules.ParseProfile(c.Profile) // it was checked
	flags, err := c.Flags()
	if err != nil {
		return err
	}
	b := &batch{fallback: fallback, judge: NewJudge(a.Now, (*acl.Rules)(nil).ForRun(flags)), texts: newParsed(profile)}
	width, size := runtime.GOMAXPROCS(0), batchSize
	if c.Robots == "" {
		width, size = console.FetchWidth, 1 // a line may wait for a site: the next does not wait with it
	}
	in := bufio.NewReaderSize(a.Stdin, 1<<16)
	out := bufio.NewWriterSize(a.Stdout, 1<<16)
	var readErr error
	err = console.InOrder(width, chunks(in, size, &readErr), b.answer, func(answers []byte, waiting bool) error {
		_, err := out.Write(answers)
		if waiting {
			return err
		}
		return errors.Join(err, out.Flush())
	})
	if err == nil && readErr != nil {
		err = fmt.Errorf("stdin cannot be read to its end: %w", readErr)
	}
	if err == nil && b.bad.Load() {
		return console.Exit(console.ExitUsage)
	}
	return err
}

// chunks yields the lines of in, in groups of up to size. It yields the lines that
// have arrived without waiting for more, so that interactive use works. A read
// error is stored in failed.
func chunks(in *bufio.Reader, size int, failed *error) iter.Seq[[][]byte] {
	return func(yield func([][]byte) bool) {
		var chunk [][]byte
		for {
			line, err := readLine(in)
			if len(line) > 0 {
				chunk = append(chunk, line)
			}
			if err != nil && err != io.EOF {
				*failed = err
			}
			if len(chunk) > 0 && (err != nil || len(chunk) >= size || !lineWaits(in)) {
				if !yield(chunk) {
					return
				}
				chunk = nil
			}
			if err != nil {
				return
			}
		}
	}
}

// lineWaits reports whether a whole line has been read already.
func lineWaits(in *bufio.Reader) bool {
	waiting, _ := in.Peek(in.Buffered())
	return bytes.IndexByte(waiting, '\n') >= 0
}

// readLine returns the next line without its end. A line that is too long is
// truncated, so that it is not valid JSON.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if len(line) <= maxLine {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.TrimSpace(line), err
		}
	}
}

// batch judges the lines of one input.
type batch struct {
	fallback judgeFunc // for lines without robots.txt
	judge    *Judge    // for lines with one
	texts    *parsed
	bad      atomic.Bool // a line was invalid
}

// question is one line of the input. Its other members are copied to the answer.
type question struct {
	robots *string
	agent  *string
	url    *string
	rest   map[string]json.RawMessage
}

func (b *batch) answer(lines [][]byte) []byte {
	var out []byte
	for _, line := range lines {
		q, err := parseQuestion(line)
		var a *control.Judgement
		if err == nil {
			a, err = b.judgementOn(q)
		}
		if err != nil {
			b.bad.Store(true)
		}
		out = appendAnswer(out, q.rest, a, err)
	}
	return safetext.Escaped(out)
}

// judgementOn judges by the robots.txt of the question, or by fallback when it
// contains none.
func (b *batch) judgementOn(q *question) (*control.Judgement, error) {
	ctx := context.Background()
	if q.robots == nil {
		return b.fallback(ctx, *q.agent, *q.url)
	}
	return b.judge.Ask(ctx, *q.agent, *q.url, func(_ context.Context, o rules.Origin, _ string) (*rules.Policy, string, string) {
		return b.texts.policy(o, *q.robots), "", ""
	})
}

// parseQuestion parses one line of the input. With an error, the question contains
// the members that could be parsed.
func parseQuestion(line []byte) (*question, error) {
	q := &question{}
	if safetext.LossyJSON(line) {
		q.rest = map[string]json.RawMessage{}
		return q, errors.New("the line is not UTF-8, or has half of a surrogate pair; a robots.txt that is not UTF-8 goes into robots_b64")
	}
	if err := json.Unmarshal(line, &q.rest); err != nil || q.rest == nil || len(line) > maxLine {
		q.rest = map[string]json.RawMessage{}
		return q, errors.New("the line is not a JSON object")
	}
	defer delete(q.rest, "robots")
	defer delete(q.rest, "robots_b64")
	var encoded *string
	for name, into := range map[string]**string{"robots": &q.robots, "robots_b64": &encoded, "agent": &q.agent, "url": &q.url} {
		if raw, given := q.rest[name]; given && json.Unmarshal(raw, into) != nil {
			return q, fmt.Errorf("%s is not a text", name)
		}
	}
	switch {
	case q.agent == nil:
		return q, errors.New("agent is missing")
	case q.url == nil:
		return q, errors.New("url is missing")
	case encoded == nil:
		return q, nil
	case q.robots != nil:
		return q, errors.New("robots and robots_b64 exclude each other")
	}
	text, err := base64.StdEncoding.DecodeString(*encoded)
	if err != nil {
		return q, errors.New("robots_b64 is not base64")
	}
	decoded := string(text)
	q.robots = &decoded
	return q, nil
}

// answer is what is added to the members of a question.
type answer struct {
	Allowed bool         `json:"allowed"`
	Reason  rules.Reason `json:"reason"`
	Group   string       `json:"group"`
	Rule    string       `json:"rule"`
	Line    int          `json:"line"`
	Detail  string       `json:"detail,omitempty"`
}

// answerMembers are the names of the answer's own members. Members of a question
// with these names are not copied.
var answerMembers = []string{"allowed", "reason", "group", "rule", "line", "detail", "error"}

// appendAnswer appends one line of the output: the copied members, ordered by name,
// then the answer or the error.
func appendAnswer(out []byte, rest map[string]json.RawMessage, a *control.Judgement, err error) []byte {
	out = append(out, '{')
	for _, name := range slices.Sorted(maps.Keys(rest)) {
		if !slices.Contains(answerMembers, name) {
			out = append(append(append(append(out, bytes.TrimSpace(line(name))...), ':'), rest[name]...), ',')
		}
	}
	if err != nil {
		return append(out, line(map[string]string{"error": err.Error()})[1:]...)
	}
	return append(out, line(answer{a.Allowed, a.Reason, a.Group, a.Rule, a.Line, a.Detail})[1:]...)
}

// line returns v as a line of JSON.
func line(v any) []byte {
	var text bytes.Buffer
	_ = console.NewJSON(&text).Encode(v) // texts and numbers cannot fail
	return text.Bytes()
}
