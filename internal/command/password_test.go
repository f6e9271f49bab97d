package command

import (
	"regexp"
	"testing"

	"heed/internal/output/console"
)

// `heed config password` prints the line for a password that a program writes to it.
func TestConfigPassword_PrintsALineOfTheUsersFile(t *testing.T) {
	for _, stdin := range []string{"open sesame\n", "open sesame", "open sesame\r\n"} {
		got := heed(t, stdin, "config", "password", "ann")
		if got.status != 0 || got.errors != "" || !regexp.MustCompile(`^ann:\$2[ab]\$10\$[./A-Za-z0-9]{53}\n$`).MatchString(got.out) {
			t.Errorf("%q: %+v", stdin, got)
		}
	}
	heed(t, "", "config", "password", "ann").is(t, console.ExitUsage, "", "heed: the password is empty\n")
	heed(t, "x\n", "config", "password", "a:b").is(t, console.ExitUsage, "", "heed: \"a:b\" cannot be the name of a user: it has a colon\n")
	heed(t, "x\ny\n", "config", "password", "ann").is(t, console.ExitUsage, "", "heed: the password has more than one line\nWrite it on one line of the standard input, or type it at the prompt\n")
}
