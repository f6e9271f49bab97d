package command_test

import (
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"

	"heed/internal/output/manual"
	"heed/internal/tools/testkit/must"
)

func TestHelp_UsesThePagerOnATerminal(t *testing.T) {
	t.Parallel()
	topic, _ := manual.Lookup("languages")
	plain := strings.ReplaceAll(topic.Text, "\n", "\r\n") // as a terminal shows it
	for name, c := range map[string]struct{ pager, want string }{
		"a pager with arguments":        {"PAGER=sed s/^/paged:/", "paged:" + strings.TrimSuffix(strings.ReplaceAll(plain, "\r\n", "\r\npaged:"), "paged:")},
		"no PAGER and no less":          {"", plain},
		"an empty PAGER":                {"PAGER=", plain},
		"a pager that does not exist":   {"PAGER=/no/such/pager 2>/dev/null", plain},
		"a pager that fails in silence": {"PAGER=false", plain},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			person, program := terminal(t)
			cmd := newPlace(t).heed("help", "languages")
			if c.pager == "" {
				cmd.Env[0] = "PATH=/no/such/directory"
			} else {
				cmd.Env = append(cmd.Env, c.pager)
			}
			cmd.Stdout = program
			must.OK(t, cmd.Start())
			program.Close()
			screen, err := io.ReadAll(person)
			must.Need(t, err == nil || errors.Is(err, syscall.EIO), "%v", err) // how a terminal without programs ends
			must.OK(t, cmd.Wait())
			must.True(t, string(screen) == c.want, "the terminal shows\n%s\nwant\n%s", screen, c.want)
		})
	}
}
