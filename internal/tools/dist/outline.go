package main

import (
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"heed/internal/command"
)

// verb is a command of the grammar, for documents and completions that are made from it.
type verb struct {
	Path   []string // the words of the command, "audit", "report"; empty: heed without a command
	Help   string   // one sentence
	Detail string   // what --help prints at the end; paragraphs, and examples indented by two spaces
	Flags  []option // without those that are hidden, and without those of the commands above
	Args   []string // as a synopsis writes them: "URL ...", "[FILE ...]"
	Verbs  []*verb
}

// option is a flag of a verb.
type option struct {
	Name    string // without the dashes
	Short   string // one letter; empty: none
	Value   string // what a synopsis writes for its value: "FILE"; empty: it has none
	Help    string
	Choices []string // the values that it can have; nil: any
	Env     []string // variables of the environment that replace it
}

// readOutline returns the grammar of the command line. The commands are in the order in which
// `heed --help` lists them.
func readOutline() (*verb, error) {
	model, err := command.Model()
	if err != nil {
		return nil, err
	}
	top := outlineOf(model.Node, nil)
	top.Detail = model.Help
	return top, nil
}

func outlineOf(node *kong.Node, path []string) *verb {
	v := &verb{Path: path, Help: node.Help, Detail: node.Detail}
	for _, f := range node.Flags {
		if !f.Hidden {
			v.Flags = append(v.Flags, flagOf(f))
		}
	}
	for _, arg := range node.Positional {
		v.Args = append(v.Args, arg.Summary())
	}
	for _, child := range node.Children {
		if !child.Hidden && child.Type == kong.CommandNode {
			v.Verbs = append(v.Verbs, outlineOf(child, append(slices.Clone(path), child.Name)))
		}
	}
	return v
}

// flagOf returns a flag. A placeholder of lower-case words, as sh|fish, lists its values.
func flagOf(f *kong.Flag) option {
	flag := option{Name: f.Name, Help: f.Help, Env: f.Envs}
	if f.Short != 0 {
		flag.Short = string(f.Short)
	}
	if f.IsBool() || f.IsCounter() {
		return flag
	}
	if flag.Value = f.PlaceHolder; flag.Value == "" {
		flag.Value = strings.ToUpper(f.Name)
	}
	if f.Enum != "" {
		flag.Choices = slices.DeleteFunc(f.EnumSlice(), func(v string) bool { return v == "" })
	} else if strings.ToLower(flag.Value) == flag.Value {
		flag.Choices = strings.Split(flag.Value, "|")
	}
	return flag
}
