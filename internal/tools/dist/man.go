package main

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"heed/internal/output/manual"
)

// manPage returns heed(1), in the macros of man(7), from the grammar of the command line
// and the list of the manual's topics.
func manPage(top *verb, version string, date time.Time) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, ".TH HEED 1 %q %q\n", date.UTC().Format(time.DateOnly), "heed "+version)
	b.WriteString(".SH NAME\nheed \\- a forward proxy that makes any client obey robots.txt\n.SH SYNOPSIS\n")
	for i, v := range top.Verbs {
		if i > 0 {
			b.WriteString(".br\n")
		}
		fmt.Fprintf(&b, ".B heed %s\n%s\n", roffWords(v.Path...), ellipsis(v))
	}
	b.WriteString(".SH DESCRIPTION\n")
	roffText(&b, top.Detail)
	b.WriteString(".SH COMMANDS\n")
	each(top, func(v *verb) {
		if len(v.Verbs) == 0 {
			manVerb(&b, v)
		}
	})
	manEnvironment(&b, top)
	b.WriteString(".SH FILES\n")
	for _, f := range files {
		fmt.Fprintf(&b, ".TP\n.I %s\n%s\n", f.path, roff(f.what))
	}
	b.WriteString(".SH MANUAL\nThe manual is part of the program. \\(lqheed help TOPIC\\(rq prints one of its topics:\n")
	for _, t := range manual.Topics() {
		fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roffWords(t.Name), roff(t.Title))
	}
	return b.Bytes()
}

// files are those that the package installs or the service writes.
var files = []struct{ path, what string }{
	{"/etc/heed/proxy.toml", "The settings of the service. It contains every setting with its default."},
	{"/var/lib/heed", "The state directory of the service: the CA, the stored robots.txt files, the record of decisions."},
	{"~/.local/state/heed", "The state directory of a user."},
}

// each calls do with every command below v, in the order of the grammar.
func each(v *verb, do func(*verb)) {
	for _, child := range v.Verbs {
		do(child)
		each(child, do)
	}
}

func ellipsis(v *verb) string {
	if len(v.Verbs) > 0 {
		return roff("COMMAND [FLAGS]")
	}
	return roff(strings.TrimSpace("[FLAGS] " + strings.Join(v.Args, " ")))
}

func manVerb(b *bytes.Buffer, v *verb) {
	fmt.Fprintf(b, ".SS heed %s %s\n", roffWords(v.Path...), roff(strings.Join(v.Args, " ")))
	roffText(b, strings.TrimSpace(v.Help+"\n\n"+v.Detail))
	for _, f := range v.Flags {
		if f.Name == "help" {
			continue
		}
		b.WriteString(".TP\n")
		if f.Short != "" {
			fmt.Fprintf(b, "\\fB%s\\fR, ", roffWords("-"+f.Short))
		}
		fmt.Fprintf(b, "\\fB%s\\fR", roffWords("--"+f.Name))
		if f.Value != "" {
			fmt.Fprintf(b, " \\fI%s\\fR", roffWords(f.Value))
		}
		fmt.Fprintf(b, "\n%s\n", roff(f.Help))
	}
}

// manEnvironment writes the variables that replace flags, and the others.
func manEnvironment(b *bytes.Buffer, top *verb) {
	b.WriteString(".SH ENVIRONMENT\n")
	seen := map[string]bool{}
	each(top, func(v *verb) {
		for _, f := range v.Flags {
			for _, name := range f.Env {
				if !seen[name] {
					seen[name] = true
					fmt.Fprintf(b, ".TP\n.B %s\nReplaces \\fB%s\\fR of \\(lqheed %s\\(rq.\n", roffWords(name), roffWords("--"+f.Name), roffWords(v.Path...))
				}
			}
		}
	})
	for _, v := range []struct{ name, what string }{
		{"HEED_CONFIG", "Names the settings file; set and empty, no file is read."},
		{"HEED_STATE", "Names the state directory."},
		{"HEED_STATE_GROUP", "The number of a group that is trusted with the state directory: see \\(lqheed help containers\\(rq."},
		{"NO_COLOR", "Switches colours off."},
		{"PAGER", "Shows the manual."},
	} {
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roffWords(v.name), roff(v.what))
	}
}

// roffText writes paragraphs. Lines that are indented are examples, as they are.
func roffText(b *bytes.Buffer, text string) {
	for i, paragraph := range strings.Split(strings.Trim(text, "\n"), "\n\n") {
		if i > 0 {
			b.WriteString(".PP\n")
		}
		example := false
		for line := range strings.SplitSeq(paragraph, "\n") {
			indented := strings.HasPrefix(line, "  ")
			if indented && !example {
				b.WriteString(".RS 4\n.nf\n")
			} else if !indented && example {
				b.WriteString(".fi\n.RE\n")
			}
			example = indented
			b.WriteString(roff(strings.TrimPrefix(line, "  ")) + "\n")
		}
		if example {
			b.WriteString(".fi\n.RE\n")
		}
	}
}

// roff returns a line of text in which nothing is a request or an escape.
func roff(text string) string {
	text = strings.ReplaceAll(text, `\`, `\e`)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return strings.ReplaceAll(text, "--", `\-\-`)
}

// roffWords returns words of a command line, whose dashes can be copied.
func roffWords(words ...string) string {
	return strings.NewReplacer(`\-`, `\-`, "-", `\-`).Replace(roff(strings.Join(words, " ")))
}
