package accesslog

import (
	"bufio"
	"bytes"
	"io"
	"strings"
)

// block is how many octets are read together. The lines of a block are one string.
const block = 64 << 10

// lines reads lines. Those over maxLine are cut.
type lines struct {
	in   *bufio.Reader // of more than a block
	text string        // complete lines that are not returned yet
}

// line is a line of a log, without its end.
type line struct {
	text string
	cut  bool // it is longer than maxLine
	torn bool // the file is damaged within it
}

// next returns the next line. The error after the last one is io.EOF, or what is wrong
// with the file.
func (l *lines) next() (line, error) {
	if l.text == "" {
		b, err := l.in.Peek(block)
		end := bytes.LastIndexByte(b, '\n') + 1
		switch {
		case end == 0 && len(b) > 0:
			return l.long(), nil
		case end == 0:
			return line{}, err
		}
		l.text = string(b[:end])
		_, _ = l.in.Discard(end) // it was peeked
	}
	text, rest, _ := strings.Cut(l.text, "\n")
	l.text = rest
	return line{text: strings.TrimSuffix(text, "\r")}, nil
}

// long reads a line that is longer than a block, or has no end.
func (l *lines) long() line {
	var text []byte
	err := bufio.ErrBufferFull
	for err == bufio.ErrBufferFull {
		var b []byte
		b, err = l.in.ReadSlice('\n')
		text = append(text, b[:min(len(b), maxLine+1-len(text))]...)
	}
	text, ended := bytes.CutSuffix(text, []byte("\n"))
	if len(text) > maxLine {
		return line{text: string(text[:maxLine]), cut: true}
	}
	return line{text: strings.TrimSuffix(string(text), "\r"), torn: !ended && err != io.EOF}
}
