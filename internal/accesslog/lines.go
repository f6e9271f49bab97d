package accesslog

import (
	"bytes"
	"io"
	"strings"
)

// block is how many octets are read together. The lines of a block are one string.
const block = 64 << 10

// lines reads lines. Those over maxLine are cut.
type lines struct {
	in       io.Reader
	buf      []byte
	n        int    // octets in buf
	text     string // complete lines that are not returned yet
	skipping bool   // the rest of a line that was cut is to be left out
	err      error  // after what is in buf
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
	for l.text == "" {
		if l.err != nil {
			return l.last()
		}
		if got, ok := l.fill(); ok {
			return got, nil
		}
	}
	text, rest, _ := strings.Cut(l.text, "\n")
	l.text = rest
	return whole(text), nil
}

// last returns what follows the last end of a line.
func (l *lines) last() (line, error) {
	if l.n == 0 || l.skipping {
		l.n = 0
		return line{}, l.err
	}
	got := whole(string(l.buf[:l.n]))
	got.torn = l.err != io.EOF
	l.n = 0
	return got, nil
}

func whole(text string) line {
	if len(text) > maxLine {
		return line{text: text[:maxLine], cut: true}
	}
	return line{text: strings.TrimSuffix(text, "\r")}
}

// fill reads a block. ok is set when it has the beginning of a line that is too long.
func (l *lines) fill() (got line, ok bool) {
	if len(l.buf)-l.n < block {
		grown := make([]byte, max(2*len(l.buf), 2*block))
		copy(grown, l.buf[:l.n])
		l.buf = grown
	}
	n, err := l.in.Read(l.buf[l.n : l.n+block])
	fresh := l.buf[l.n : l.n+n]
	l.err = err
	if l.skipping {
		end := bytes.IndexByte(fresh, '\n')
		if end < 0 {
			return line{}, false
		}
		l.skipping = false
		l.n = copy(l.buf, fresh[end+1:])
		fresh = l.buf[:l.n]
	} else {
		l.n += n
	}
	if end := bytes.LastIndexByte(fresh, '\n'); end >= 0 {
		end += l.n - len(fresh) + 1
		l.text = string(l.buf[:end])
		l.n = copy(l.buf, l.buf[end:l.n])
		return line{}, false
	}
	if l.n <= maxLine {
		return line{}, false
	}
	got = line{text: string(l.buf[:maxLine]), cut: true}
	l.n, l.skipping = 0, true
	return got, true
}
