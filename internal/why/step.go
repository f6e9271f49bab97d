package why

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

// step begins a step.
func (x *explainer) step(label, format string, values ...any) {
	x.steps = append(x.steps, Step{label, []string{fmt.Sprintf(format, values...)}})
}

// more adds a line to the last step.
func (x *explainer) more(format string, values ...any) {
	last := &x.steps[len(x.steps)-1]
	last.Lines = append(last.Lines, fmt.Sprintf(format, values...))
}

// Text returns steps for a terminal, one paragraph each.
func Text(steps []Step, paint console.Painter) string {
	var out strings.Builder
	for _, s := range steps {
		for i, line := range s.Lines {
			if i == 0 && s.Label != "" {
				out.WriteString(paint(console.Bold, fmt.Sprintf("  %-*s", labelWidth-2, s.Label)))
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

// Listed calls each with the first ones of a list, and more with the number of the others, if
// there are any.
func Listed[T any](list []T, each func(i int, x *T), more func(n int)) {
	for i := range list[:min(len(list), MaxListed)] {
		each(i, &list[i])
	}
	if n := len(list) - MaxListed; n > 0 {
		more(n)
	}
}
