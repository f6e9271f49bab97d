package check

import (
	"fmt"
	"strings"

	"heed/internal/console"
)

// Step is one step of an explanation: a paragraph with a label. Text of clients and sites
// in it is printable, and is not escaped for HTML.
type Step struct {
	Label string
	Lines []string // at least one
}

// Step begins a step.
func (x *Explainer) Step(label, format string, values ...any) {
	x.Steps = append(x.Steps, Step{label, []string{fmt.Sprintf(format, values...)}})
}

// More adds a line to the last step.
func (x *Explainer) More(format string, values ...any) {
	if len(x.Steps) == 0 {
		x.Steps = []Step{{}}
	}
	last := &x.Steps[len(x.Steps)-1]
	last.Lines = append(last.Lines, fmt.Sprintf(format, values...))
}

// Text returns the steps for a terminal, one paragraph each.
func (x *Explainer) Text() string {
	var out strings.Builder
	for _, s := range x.Steps {
		for i, line := range s.Lines {
			if i == 0 && s.Label != "" {
				out.WriteString(x.Paint(console.Bold, fmt.Sprintf("  %-*s", labelWidth-2, s.Label)))
			} else {
				out.WriteString(strings.Repeat(" ", labelWidth))
			}
			writeWrapped(&out, line)
		}
	}
	return out.String()
}

// writeWrapped writes one line, wrapped at blanks; words are never split. Continuation
// lines are indented by two more columns.
func writeWrapped(out *strings.Builder, line string) {
	at := labelWidth
	for i, word := range strings.Split(line, " ") {
		size := len([]rune(word))
		switch {
		case i == 0:
		case at+1+size > pageWidth:
			out.WriteString("\n" + strings.Repeat(" ", labelWidth+2))
			at = labelWidth + 2
		default:
			out.WriteByte(' ')
			at++
		}
		out.WriteString(word)
		at += size
	}
	out.WriteByte('\n')
}
