package command_test

import (
	"bufio"
	"bytes"
	"strings"
	"syscall"
	"testing"

	"heed/internal/tools/testkit/must"
)

// A password that a person types is asked for twice and is not shown.
func TestConfigPassword_IsNotShownWhileItIsTyped(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		again string
		right bool
	}{"the same": {"sesame", true}, "another": {"sesam", false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			person, program := terminal(t)
			cmd := newPlace(t).heed("config", "password", "ann")
			var out bytes.Buffer
			cmd.Stdin, cmd.Stdout, cmd.Stderr = program, &out, program
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			must.OK(t, cmd.Start())
			program.Close()
			screen := bufio.NewReader(person)
			shown := ""
			for _, typed := range []string{"sesame", c.again} {
				prompt := must.Get(screen.ReadString(':'))(t)
				shown += prompt
				must.Get(person.WriteString(typed + "\n"))(t)
			}
			for line, err := "", error(nil); err == nil; shown += line {
				line, err = screen.ReadString('\n')
			}
			err := cmd.Wait()
			must.True(t, (err == nil) == c.right, "ends with %v", err)
			if strings.Contains(shown, "sesam") || strings.HasPrefix(out.String(), "ann:$2") != c.right || strings.Contains(shown, "are not the same") == c.right {
				t.Errorf("shows %q and prints %q", shown, out.String())
			}
		})
	}
}
