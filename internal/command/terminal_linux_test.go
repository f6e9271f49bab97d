package command_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// terminal opens a new terminal: keyboard and screen at one end, what programs
// see at the other.
func terminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person = must.Get(os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0))(t)
	t.Cleanup(func() { person.Close() })
	fd := int(person.Fd())
	number := must.Get(unix.IoctlGetInt(fd, unix.TIOCGPTN))(t)
	must.OK(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	program = must.Get(os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0))(t)
	t.Cleanup(func() { program.Close() })
	return person, program
}

// The terminal sends Ctrl-C to every process of its foreground, so to the
// command as well as to heed. Passed on once more, it would end programs that
// take the second one for "at once".
func TestCtrlCReachesTheCommandOnce(t *testing.T) {
	for name, flags := range map[string][]string{"plain": nil, "sealed": {"--sealed"}} {
		t.Run(name, func(t *testing.T) { ctrlC(t, flags) })
	}
}

func ctrlC(t *testing.T, flags []string) {
	t.Parallel()
	person, program := terminal(t)
	args := slices.Concat([]string{"run", "--quiet"}, flags, []string{"--", "sh", "-c",
		`n=0; trap 'n=$((n+1)); echo interrupted' INT; trap 'echo "times $n."; exit $n' USR1; trap 'echo second' USR2
		 test -t 0 && test -t 2 && echo ready >/dev/tty; while :; do sleep 0.02; done`})
	cmd := newPlace(t).heed(args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = program, program, program
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	must.OK(t, cmd.Start())
	defer cmd.Process.Kill()
	program.Close() // its own copy stays
	screen := bufio.NewReader(person)
	after(t, screen, "ready")
	send := func(signals ...syscall.Signal) {
		for _, s := range signals {
			must.OK(t, cmd.Process.Signal(s))
		}
	}
	send(syscall.SIGSTOP) // so that the command is done with the first before heed could send a second
	must.Get(person.WriteString("\x03"))(t)
	after(t, screen, "interrupted")
	send(syscall.SIGCONT, syscall.SIGUSR2) // heed passes on in order: behind this one, none is left
	after(t, screen, "second")
	send(syscall.SIGUSR1)
	must.Equal(t, after(t, screen, "times "), "1.", "times the command was interrupted")
	var exit *exec.ExitError
	err := cmd.Wait()
	must.True(t, errors.As(err, &exit) && exit.ExitCode() == 1, "the run ends with %v, want the command's status", err)
}

// A person who waits for many sites sees how far it has come.
func TestWarmShowsProgressOnATerminal(t *testing.T) {
	t.Parallel()
	person, program := terminal(t)
	held := make(chan struct{})
	release := sync.OnceFunc(func() { close(held) })
	site := newFleetSite(t, 2)
	t.Cleanup(release) // the site's end waits for its last answer
	site.hold = func(string) { <-held }
	h := testkit.Start(t, testkit.Options{Config: site.config("heed", "")})
	list := testkit.Write(t, filepath.Join(t.TempDir(), "list"), "http://s0.test\nhttp://s1.test\n")
	cmd := exec.Command(testkit.Binary(t), "cache", "warm", list)
	cmd.Env = []string{"HEED_STATE=" + h.State}
	cmd.Stderr = program // its results go elsewhere
	must.OK(t, cmd.Start())
	program.Close()
	screen := make([]byte, 4096)
	shows := func(want string) {
		t.Helper()
		for seen := ""; !strings.Contains(seen, want); {
			n, err := person.Read(screen)
			must.OK(t, err, "the screen shows %q and then", seen)
			seen += string(screen[:n])
		}
	}
	shows("heed: 0 of 2 sites, 0 could not be asked")
	release()
	shows("heed: 2 of 2 sites, 0 could not be asked\r\n")
	must.OK(t, cmd.Wait())
}

// A site's owner reads in colours what a site wrote, and the terminal obeys
// heed's alone.
func TestOnATerminalOnlyHeedsOwnColoursAreObeyed(t *testing.T) {
	t.Parallel()
	const hostile = "\x1b[2J\x1b[32m\u009b1m\u202e\x7f"
	file := filepath.Join(t.TempDir(), "robots.txt")
	must.OK(t, os.WriteFile(file, []byte("User-agent: *\nDisallow: /"+hostile+"*\nDisallow: /\nDisalow: /a\n"), 0o600))
	for _, args := range [][]string{
		{"check", "--explain", "--robots", file, "--agent", "x" + hostile, "https://h.test/%1B%5B2J%1B%5B32m%C2%9B1m%E2%80%AE%7F"},
		{"lint", file},
	} {
		person, program := terminal(t)
		cmd := exec.Command(testkit.Binary(t), args...)
		cmd.Env = []string{"HEED_STATE=" + t.TempDir(), "TERM=xterm"}
		cmd.Stdout, cmd.Stderr = program, program
		must.OK(t, cmd.Start())
		program.Close()
		screen, _ := io.ReadAll(person) // ends with an error when the last program has let go of it
		_ = cmd.Wait()                  // what it says of the file is another test's
		shown := string(screen)
		must.Contain(t, shown, "\x1b[31m", "%q: no colour", args[0])
		for _, own := range []string{"\x1b[1m", "\x1b[31m", "\x1b[33m", "\x1b[0m", "\r\n"} {
			shown = strings.ReplaceAll(shown, own, "")
		}
		must.True(t, !strings.ContainsAny(shown, "\x1b\u009b\u202e\x7f"), "%q: %q", args[0], shown)
	}
}
