package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// CacheShowCmd is `heed cache show`.
type CacheShowCmd struct {
	cacheFlags
	Text bool   `help:"Print the text alone, byte for byte as the site sent it. On a terminal, what it would obey is written as escapes."`
	Host string `arg:"" help:"A host, such as example.org, or an origin, such as http://example.org:8080."`
}

// Help says what is shown and how it ends.
func (CacheShowCmd) Help() string {
	return `Shows what is kept of a host, in memory, on disk or by the fleet; nothing is
fetched. The text has the line numbers that decisions name; what a terminal
would obey is written as escapes, and of long files only the beginning is shown.
--text prints the file alone, whole and unchanged. Exit status 1 when nothing is
kept.

Examples:

    heed cache show example.org
    heed cache show --text example.org > robots.txt`
}

// Run prints what is kept.
func (c *CacheShowCmd) Run(a *App) error {
	k, leave, err := c.desk(a)
	if err != nil {
		return err
	}
	defer leave()
	if c.Text {
		return c.text(a, k)
	}
	lines, err := k.show(context.Background(), c.Host)
	if err != nil {
		return err
	}
	if c.JSON {
		err = printJSON(a.Stdout, lines)
	} else {
		err = printShown(a.Stdout, lines, a.Now())
	}
	if err == nil && len(lines) == 0 {
		fmt.Fprintf(a.Stderr, "heed: nothing is kept of %s\n", quoted(c.Host))
		return Exit(exitNo)
	}
	return err
}

// text prints the file alone.
func (c *CacheShowCmd) text(a *App, k cacheDesk) error {
	if c.JSON {
		return errors.New("--text prints the file as it is, --json a description of it\nLeave one of them out")
	}
	text, err := k.text(context.Background(), c.Host)
	switch {
	case err != nil:
		return err
	case text == nil:
		fmt.Fprintf(a.Stderr, "heed: no robots.txt is kept of %s\n", quoted(c.Host))
		return Exit(exitNo)
	case isTerminal(a.Stdout):
		text = []byte(printableLines(strings.ReplaceAll(string(text), "\r\n", "\n")))
	}
	_, err = a.Stdout.Write(text)
	return err
}

// printShown writes for a person.
func printShown(w io.Writer, lines []*heldLine, now time.Time) error {
	out := bufio.NewWriter(w)
	for i, l := range lines {
		if i > 0 {
			fmt.Fprintln(out)
		}
		row := func(name, format string, values ...any) {
			fmt.Fprintf(out, "%-10s %s\n", name, fmt.Sprintf(format, values...))
		}
		row("site", "%s", l.whose())
		row("state", "%s", l.State)
		row("why", "%s", l.Why)
		row("age", "%s, from %s", span(now.Sub(l.FetchedAt)), l.FetchedAt.Local().Format(time.DateTime))
		row("next", "%s, with the first request from %s on; requests wait for it from %s on", l.next(now),
			l.NextAt.Local().Format(time.DateTime), l.WaitAt.Local().Format(time.TimeOnly))
		if l.Failures > 0 {
			row("failures", "%d in a row", l.Failures)
		}
		row("memory", "%s", sizeWords(l.Bytes))
		if l.Shared {
			row("fleet", "shared")
		}
		printText(out, row, l)
	}
	return out.Flush()
}

// maxShownLine is how many characters of a line of text are shown.
const maxShownLine = 500

func printText(w io.Writer, row func(name, format string, values ...any), l *heldLine) {
	if l.Text == nil {
		row("text", "not kept")
		return
	}
	if chain := l.Snapshot.Chain; len(chain) > 1 {
		row("redirected", "to %s", quoted(chain[len(chain)-1]))
	}
	row("text", "%d bytes, SHA-256 %s", len(*l.Text), l.Snapshot.SHA256)
	text := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(*l.Text)
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if text == "" {
			break
		}
		if runes := []rune(line); len(runes) > maxShownLine {
			line = string(runes[:maxShownLine]) + "..."
		}
		fmt.Fprintf(w, "%6d  %s\n", i+1, printable(strings.ReplaceAll(line, "\t", " ")))
	}
	if l.Cut {
		row("", "... it is longer than %d KiB: the rest is not shown", maxShown>>10)
	}
}
