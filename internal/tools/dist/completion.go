package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"heed/internal/output/manual"
)

// bashCompletion returns a completion for bash: commands, flags, the values of flags that
// have a closed list, files, the topics of the manual, and the programs after `--`.
func bashCompletion(top *verb) []byte {
	var b bytes.Buffer
	b.WriteString(`# bash completion for heed, made from its grammar

_heed() {
	local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} verb= i words=
	COMPREPLY=()
	for ((i = 1; i < COMP_CWORD; i++)); do
		if [[ ${COMP_WORDS[i]} == -- ]]; then
			if ((i + 1 == COMP_CWORD)); then
				COMPREPLY=($(compgen -c -- "$current"))
			fi
			return
		fi
		case "$verb/${COMP_WORDS[i]}" in
		`)
	var paths []string
	each(top, func(v *verb) {
		paths = append(paths, bashVerb(v.Path[:len(v.Path)-1])+"/"+v.Path[len(v.Path)-1])
	})
	fmt.Fprintf(&b, "%s) verb=\"${verb:+$verb }${COMP_WORDS[i]}\" ;;\n\t\tesac\n\tdone\n\tcase \"$verb/$previous\" in\n", strings.Join(paths, " | "))
	eachWithTop(top, func(v *verb) { bashValues(&b, v) })
	b.WriteString("\tesac\n\tcase $verb in\n")
	eachWithTop(top, func(v *verb) {
		fmt.Fprintf(&b, "\t%s) words=%q ;;\n", bashPattern(v.Path), strings.Join(append(verbWords(v), flagWords(v)...), " "))
	})
	b.WriteString(`	esac
	COMPREPLY=($(compgen -W "$words" -- "$current"))
} && complete -o bashdefault -o default -F _heed heed
`)
	return b.Bytes()
}

// bashVerb is the value of verb in the script, in a pattern.
func bashVerb(path []string) string {
	return strings.ReplaceAll(strings.Join(path, " "), " ", `\ `)
}

func bashPattern(path []string) string {
	if len(path) == 0 {
		return `''`
	}
	return bashVerb(path)
}

// bashValues writes what completes the value of each flag of v.
func bashValues(b *bytes.Buffer, v *verb) {
	var open []string
	for _, f := range v.Flags {
		patterns := []string{bashVerb(v.Path) + "/--" + f.Name}
		if f.Short != "" {
			patterns = append(patterns, bashVerb(v.Path)+"/-"+f.Short)
		}
		switch {
		case f.Value == "":
		case f.Choices != nil:
			fmt.Fprintf(b, "\t%s)\n\t\tCOMPREPLY=($(compgen -W %q -- \"$current\"))\n\t\treturn\n\t\t;;\n", strings.Join(patterns, " | "), strings.Join(f.Choices, " "))
		default:
			open = append(open, patterns...)
		}
	}
	if open != nil {
		// No reply: bash completes names of files.
		fmt.Fprintf(b, "\t%s) return ;;\n", strings.Join(open, " | "))
	}
}

func eachWithTop(top *verb, do func(*verb)) {
	do(top)
	each(top, do)
}

// verbWords returns the words that can follow v: its commands, and after `heed help` the
// topics.
func verbWords(v *verb) (words []string) {
	for _, child := range v.Verbs {
		words = append(words, child.Path[len(child.Path)-1])
	}
	if slices.Equal(v.Path, []string{"help"}) {
		for _, t := range manual.Topics() {
			words = append(words, t.Name)
		}
	}
	return words
}

func flagWords(v *verb) (words []string) {
	for _, f := range v.Flags {
		words = append(words, "--"+f.Name)
	}
	return words
}

// zshCompletion returns the same for zsh, with the help of each command and flag.
func zshCompletion(top *verb) []byte {
	var b bytes.Buffer
	b.WriteString(`#compdef heed
# zsh completion for heed, made from its grammar

_heed() {
	local verb= i at=1
	local -a flags choices
	for ((i = 2; i < CURRENT; i++)); do
		[[ ${words[i]} == -- ]] && break
		case "$verb/${words[i]}" in
		`)
	var paths []string
	each(top, func(v *verb) {
		paths = append(paths, "("+zshQuote(strings.Join(v.Path[:len(v.Path)-1], " ")+"/"+v.Path[len(v.Path)-1])+")")
	})
	fmt.Fprintf(&b, "%s) verb=\"${verb:+$verb }${words[i]}\" at=$i ;;\n\t\tesac\n\tdone\n\tcase $verb in\n", strings.Join(paths, "|"))
	eachWithTop(top, func(v *verb) { zshVerb(&b, v) })
	b.WriteString(`	esac
	shift $((at - 1)) words
	((CURRENT -= at - 1))
	if ((CURRENT == 2 && $#choices)) && [[ $PREFIX != -* ]]; then
		_describe -t commands command choices
		return
	fi
	local dashes=${words[(ie)--]}
	if ((dashes < CURRENT)); then
		shift $dashes words
		((CURRENT -= dashes))
		_normal
		return
	fi
	_arguments -S $flags '*:file:_files'
}

_heed "$@"
`)
	return b.Bytes()
}

func zshVerb(b *bytes.Buffer, v *verb) {
	fmt.Fprintf(b, "\t%s)\n\t\tflags=(\n", zshQuote(strings.Join(v.Path, " ")))
	for _, f := range v.Flags {
		about := "[" + strings.NewReplacer("[", `\[`, "]", `\]`, ":", `\:`).Replace(f.Help) + "]"
		if f.Value != "" {
			about += ":" + strings.ReplaceAll(f.Value, ":", `\:`) + ":"
			if f.Choices != nil {
				about += "(" + strings.Join(f.Choices, " ") + ")"
			} else {
				about += "_files"
			}
		}
		fmt.Fprintf(b, "\t\t\t%s\n", zshQuote("*--"+f.Name+about))
		if f.Short != "" {
			fmt.Fprintf(b, "\t\t\t%s\n", zshQuote("*-"+f.Short+about))
		}
	}
	b.WriteString("\t\t)\n\t\tchoices=(\n")
	for _, child := range v.Verbs {
		fmt.Fprintf(b, "\t\t\t%s\n", zshQuote(child.Path[len(child.Path)-1]+":"+child.Help))
	}
	if slices.Equal(v.Path, []string{"help"}) {
		for _, t := range manual.Topics() {
			fmt.Fprintf(b, "\t\t\t%s\n", zshQuote(t.Name+":"+t.Title))
		}
	}
	b.WriteString("\t\t)\n\t\t;;\n")
}

func zshQuote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
