package console

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"heed/internal/base/safetext"
	"heed/internal/judge/reason"
	"heed/rules"
)

// Text of sites and clients may contain characters that change a terminal: control
// characters (C0, DEL, C1), bidi marks, and octets that are not UTF-8. They are
// always escaped: by Printable in text for people, by safetext.Escaped in JSON and log lines.

// Printable returns s with all invisible characters written as Go escapes.
func Printable(s string) string { return safetext.Visible(s) }

// PrintableLines is Printable for a text of several lines.
func PrintableLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = Printable(line)
	}
	return strings.Join(lines, "\n")
}

// Complain prints err to stderr. Its text may come from a site.
func (a *App) Complain(err error) { fmt.Fprintln(a.Stderr, "heed:", PrintableLines(err.Error())) }

// NewJSON returns an encoder of lines for programs.
func NewJSON(w io.Writer) *json.Encoder {
	e := json.NewEncoder(safetext.EscapingWriter{Writer: w})
	e.SetEscapeHTML(false)
	return e
}

// PrintJSON prints one object per line.
func PrintJSON[T any](w io.Writer, lines []T) error {
	out := bufio.NewWriter(w)
	encoder := NewJSON(out)
	for _, line := range lines {
		if err := encoder.Encode(line); err != nil {
			return err
		}
	}
	return out.Flush()
}

// MustJSON returns v as JSON. It panics for values that JSON cannot represent.
func MustJSON(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic("a value cannot be marshalled: " + err.Error())
	}
	return text
}

// Digest returns the SHA-256 of v as JSON, in hexadecimal.
func Digest(v any) string {
	sum := sha256.Sum256(MustJSON(v))
	return hex.EncodeToString(sum[:])
}

// maxQuoted bounds one text from a site that is printed, in characters.
const maxQuoted = 120

// ReasonText returns a reason in words, followed by its code.
func ReasonText(r rules.Reason) string {
	words := reason.Of(r).Words
	if words == string(r) {
		return words
	}
	return words + " [" + string(r) + "]"
}

// Plural returns n and the word, with an s unless n is 1.
func Plural(n uint64, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return strconv.FormatUint(n, 10) + " " + word + "s"
}

// Quoted returns text from a site or a client for a terminal: Printable, and no longer
// than maxQuoted characters.
func Quoted(s string) string { return Truncated(s, maxQuoted) }

// Truncated returns s as Printable does, cut after most characters.
func Truncated(s string, most int) string {
	s = Printable(s)
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most]) + "..."
	}
	return s
}

// Nearest returns the candidate closest to word by edit distance; "" when none is
// close.
func Nearest(word string, candidates []string) string {
	if len(candidates) == 0 {
		return ""
	}
	best := slices.MinFunc(candidates, func(a, b string) int { return distance(word, a) - distance(word, b) })
	if distance(word, best) > max(1, len(best)/3) {
		return ""
	}
	return best
}

// distance returns the edit distance: insertions, deletions, substitutions and exchanges of
// two neighbours.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, last, row = last, row, before
		row[0] = i + 1
		for j := range len(b) {
			cost := last[j]
			if a[i] != b[j] {
				cost++
			}
			row[j+1] = min(cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}

// Lookup returns the value of a variable in environ: that of its last entry, as a
// program started with environ sees it.
func Lookup(environ []string, name string) (value string, present bool) {
	for _, entry := range slices.Backward(environ) {
		if n, v, ok := strings.Cut(entry, "="); ok && n == name {
			return v, true
		}
	}
	return "", false
}

// TimeHint ends errors about a time that cannot be parsed.
const TimeHint = "\nWrite a time such as 30m, 2h or 14d"

// maxDays is the longest duration in days. It does not overflow a time.Duration.
const maxDays = 36500

// ParseDuration is time.ParseDuration that also accepts days, such as 90d.
func ParseDuration(text string) (time.Duration, error) {
	if digits, ok := strings.CutSuffix(text, "d"); ok {
		if days, err := strconv.Atoi(digits); err == nil && days >= 0 && days <= maxDays {
			return time.Duration(days) * 24 * time.Hour, nil
		}
	}
	return time.ParseDuration(text)
}

// ParseFor parses the value of --for, such as 30m, 2h or 14d. It must be positive and
// at most most.
func ParseFor(text string, most time.Duration) (time.Duration, error) {
	d, err := ParseDuration(text)
	switch {
	case err != nil || d <= 0:
		return 0, fmt.Errorf("--for: %q is not a valid duration"+TimeHint, text)
	case d > most:
		return 0, fmt.Errorf("--for: %s is too long; at most %d days can be granted this way\nWrite a permanent setting into proxy.toml", text, most/(24*time.Hour))
	}
	return d, nil
}

// CAWarningDays is the remaining validity of the CA, in days, from which on heed
// warns.
const CAWarningDays = 30

// DaysLeft returns a remark on a CA that expires within CAWarningDays; empty for
// others.
func DaysLeft(days int) string {
	switch {
	case days > CAWarningDays:
		return ""
	case days == 1:
		return "  (1 day left; make the next one with `heed ca renew`)"
	}
	return fmt.Sprintf("  (%d days left; make the next one with `heed ca renew`)", days)
}
