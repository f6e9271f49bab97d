package fleet_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"heed/internal/pace"
	"heed/internal/pace/fleet"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// reply is what an impostor answers to a command, in capital letters, of which it
// has answered n before on this connection. Empty: nothing.
type reply func(command string, args []string, n int) string

// impostor listens where a store is expected, and answers as it likes.
func impostor(t *testing.T, answer reply) (addr string) {
	t.Helper()
	return testkit.RawSite(t, func(c net.Conn) { pretend(c, answer) })
}

func pretend(c net.Conn, answer reply) {
	defer c.Close()
	in := bufio.NewReader(c)
	for n := 0; ; n++ {
		args := readCommand(in)
		if len(args) == 0 {
			return
		}
		text := answer(strings.ToUpper(args[0]), args[1:], n)
		if pause, rest, slow := strings.Cut(text, "~"); slow { // seconds~reply
			d, _ := time.ParseDuration(pause)
			testkit.Delay(d)
			text = rest
		}
		for text == "drip" {
			if _, err := c.Write([]byte("+")); err != nil {
				return
			}
			text = strings.Repeat("x", 1<<10)
			for i := range text {
				testkit.Delay(50 * time.Millisecond)
				if _, err := c.Write([]byte(text[i : i+1])); err != nil {
					return
				}
			}
		}
		for text == "endless" {
			if _, err := c.Write([]byte(strings.Repeat("+xxxxxxxx", 1<<10))); err != nil {
				return
			}
		}
		if _, err := io.WriteString(c, text); err != nil {
			return
		}
	}
}

func readCommand(in *bufio.Reader) (args []string) {
	number := func() int {
		line, err := in.ReadString('\n')
		if err != nil || len(line) < 3 {
			return 0
		}
		n, _ := strconv.Atoi(strings.TrimSpace(line[1:]))
		return n
	}
	for range number() {
		arg := make([]byte, number()+2)
		if _, err := io.ReadFull(in, arg); err != nil {
			return nil
		}
		args = append(args, string(arg[:len(arg)-2]))
	}
	return args
}

// always answers every command with text.
func always(text string) reply { return func(string, []string, int) string { return text } }

// polite answers as a server does that has no HELLO, and all other commands with text.
func polite(text string) reply {
	return func(command string, _ []string, _ int) string {
		switch command {
		case "HELLO":
			return "-ERR unknown command 'HELLO'\r\n"
		case "AUTH", "SELECT", "CLIENT":
			return "+OK\r\n"
		}
		return text
	}
}

// only answers one command with text, and all others as polite does with :1.
func only(command, text string) reply {
	return func(is string, args []string, n int) string {
		if is == command {
			return text
		}
		return polite(":1\r\n")(is, args, n)
	}
}

var nested = strings.Repeat("*1\r\n", 1<<20) + ":1\r\n"

// Every reply is tried as the answer to everything, to everything after a proper
// greeting, and to some commands alone.
var nonsense = map[string]string{
	"empty arrays": "*0\r\n", "a huge map": "%1000000000\r\n", "a huge array": "*1000000000\r\n", "a long string": "$99999999999\r\n",
	"arrays in arrays": nested, "nil": "$-1\r\n", "no array": "*-1\r\n", "ones": ":1\r\n", "texts": "+OK\r\n", "errors": "-ERR no\r\n",
	"a web server": "HTTP/1.1 400 Bad Request\r\n\r\n", "an endless line": "endless", "octet by octet": "drip", "nothing": "",
	"ones in an array": "*5\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n", "nils in an array": "*3\r\n$-1\r\n$-1\r\n$-1\r\n",
	"three arrays": "*3\r\n*0\r\n*0\r\n*0\r\n", "a map with an array as a key": "%1\r\n*0\r\n:1\r\n",
	"a short message": "*1\r\n$7\r\nmessage\r\n", "a message of numbers": "*3\r\n$7\r\nmessage\r\n:1\r\n:1\r\n",
	"a moved slot": "-MOVED 1 127.0.0.1:1\r\n", "an asking slot": "-ASK 1 nowhere\r\n", "no such script": "-NOSCRIPT no\r\n",
	"a slow answer": "300ms~:1\r\n", "a slower answer": "900ms~$-1\r\n", "turns without end": "*5\r\n:0\r\n:2592000000\r\n:2592000000\r\n:0\r\n:0\r\n",
}

// request asks what one request may ask.
func request(t *testing.T, p *fleet.Policies, turns *fleet.Lanes) {
	t.Helper()
	p.Newer(t.Context(), tag, "", 0)
	if end, _ := p.Lease(t.Context(), tag, "", 0); end != nil {
		end([]byte("record"), []byte("file"), time.Hour)
	}
	lanes := []pace.Lane{{Name: "group", Delay: time.Second}}
	turns.Ask(t.Context(), tag, "ticket", lanes)
	_ = turns.Started(t.Context(), tag, "ticket", lanes, 0)
}

func TestHeed_AHostileStoreCostsSharedStateOnly(t *testing.T) {
	t.Parallel()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	for name, text := range nonsense {
		for kind, answer := range map[string]reply{
			"to all": always(text), "politely": polite(text), "to HELLO": only("HELLO", text), "to SUBSCRIBE": only("SUBSCRIBE", text),
			"to SENTINEL": only("SENTINEL", text), "to CLUSTER": only("CLUSTER", text), "to COMMAND": only("COMMAND", text), "to SCAN": only("SCAN", text),
		} {
			for _, form := range []string{"redis://%s", "redis://%s?master=heeds", "redis://%s?cluster=true"} {
				if strings.HasSuffix(kind, "SENTINEL") != strings.Contains(form, "master") && !strings.HasPrefix(kind, "to all") {
					continue
				}
				t.Run(name+" "+kind+" "+form, func(t *testing.T) {
					t.Parallel()
					url := fmt.Sprintf(form, impostor(t, answer))
					s, _ := open(t, url)
					p, turns := s.Policies("space"), s.Lanes()
					p.Watch(func(string, bool) {})
					turns.Watch(func(string, time.Duration) {})
					_ = p.Tags(t.Context(), func(string) bool { return false })
					testkit.Until(t, "the store counts as away", func() bool {
						request(t, p, turns)
						return s.Health().Away
					})
				})
			}
		}
	}
	t.Cleanup(func() {
		var after runtime.MemStats
		runtime.ReadMemStats(&after)
		grown := after.Sys - before.Sys
		must.True(t, after.Sys <= before.Sys || grown <= 512<<20, "the process has grown by %d MiB", grown>>20)
	})
}
