package command

import (
	"fmt"
	"io"
)

// Colours of a terminal (ECMA-48).
const (
	bold   = "\x1b[1m"
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
)

// painter colours a text, or does not.
type painter func(colour, text string) string

// colours paints for a terminal, unless NO_COLOR is set (no-color.org).
func colours(environ []string, w io.Writer) painter {
	if no, _ := lookup(environ, "NO_COLOR"); no != "" || !isTerminal(w) {
		return func(_, text string) string { return text }
	}
	return func(colour, text string) string { return colour + text + "\x1b[0m" }
}

// progress says on a terminal what takes so long.
func (a *App) progress(text string) {
	if isTerminal(a.Stderr) {
		fmt.Fprintln(a.Stderr, "heed:", text)
	}
}
