package command

import (
	"fmt"
	"strings"
)

// shell writes changes of the environment in one shell's language.
type shell interface {
	set(v Variable) string
	unset(name string) string
}

// shells are the languages of `heed env --shell`.
var shells = map[string]shell{"sh": posix{}, "fish": fish{}, "powershell": powershell{}}

// posix is sh, bash, zsh, dash and their like.
type posix struct{}

func (posix) set(v Variable) string    { return "export " + v.Name + "=" + shellQuote(v.Value) }
func (posix) unset(name string) string { return "unset " + name }

type fish struct{}

func (fish) set(v Variable) string {
	return "set -gx " + v.Name + " '" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(v.Value) + "'"
}
func (fish) unset(name string) string { return "set -e " + name }

type powershell struct{}

func (powershell) set(v Variable) string {
	return fmt.Sprintf("$env:%s = '%s'", v.Name, strings.ReplaceAll(v.Value, "'", "''"))
}
func (powershell) unset(name string) string {
	return "Remove-Item Env:" + name + " -ErrorAction SilentlyContinue"
}
