package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"heed/internal/access"
	"heed/internal/console"
)

// ConfigPasswordCmd is `heed config password`.
type ConfigPasswordCmd struct {
	Name string `arg:"" help:"The name of the user."`
}

// Run reads the password and prints the line.
func (c *ConfigPasswordCmd) Run(a *console.App) error {
	password, err := typedPassword(a, c.Name)
	if err != nil {
		return err
	}
	line, err := access.Line(c.Name, password)
	if err == nil {
		_, err = fmt.Fprintln(a.Stdout, line)
	}
	return err
}

// typedPassword reads the password of a user: from a terminal twice, without showing it,
// else the only line of the standard input.
func typedPassword(a *console.App, name string) (string, error) {
	f, ok := a.Stdin.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		data, err := io.ReadAll(io.LimitReader(a.Stdin, 4<<10))
		line, rest, _ := strings.Cut(string(data), "\n")
		if err == nil && rest != "" {
			err = errors.New("the password has more than one line\nWrite it on one line of the standard input, or type it at the prompt")
		}
		return strings.TrimSuffix(line, "\r"), err
	}
	before, err := term.MakeRaw(int(f.Fd())) // before the prompt: what is typed early is not shown either
	if err != nil {
		return "", err
	}
	defer term.Restore(int(f.Fd()), before)
	screen := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{f, a.Stderr}, "")
	typed, err := screen.ReadPassword("Password of " + console.Printable(name) + ": ")
	if err != nil {
		return "", err
	}
	again, err := screen.ReadPassword("The same again: ")
	if err == nil && again != typed {
		err = errors.New("the two passwords are not the same\nNothing was printed; start again")
	}
	return typed, err
}
