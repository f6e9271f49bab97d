package audit

import "strings"

// Command returns a command line as it is kept: values that fit Redact's names
// are hidden behind --name= and --name, in fields (name: value), in variables
// (NAME=value) and in the addresses among the arguments. What a command takes as
// a secret under no such name stays.
func (p *Privacy) Command(args []string) []string {
	kept := make([]string, len(args))
	hide := false // the argument is the value of the one before it
	for i, arg := range args {
		if hide && !strings.HasPrefix(arg, "-") {
			kept[i], hide = p.hash("redacted", arg), false
			continue
		}
		kept[i], hide = p.argument(arg)
	}
	return kept
}

// argument returns one argument as it is kept, and whether its value is the next
// one.
func (p *Privacy) argument(arg string) (kept string, valueFollows bool) {
	if p == nil {
		return arg, false
	}
	end := strings.IndexAny(arg, "=:")
	option := strings.HasPrefix(arg, "-")
	switch {
	case end < 0:
		return arg, option && p.names.fits(arg)
	case end+1 < len(arg) && !strings.ContainsAny(arg[:end], "/?&") && p.names.fits(arg[:end]):
		value := strings.TrimLeft(arg[end+1:], " ")
		if value == "" {
			return arg, false
		}
		return strings.TrimSuffix(arg, value) + p.hash("redacted", value), false
	}
	kept, _ = p.Redact(arg)
	return kept, false
}
