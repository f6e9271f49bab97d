package logs

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// stream returns both ends of a pipe or of a socket, and the value of JOURNAL_STREAM that names the
// end that is written to.
func stream(t *testing.T, kind string) (read, write *os.File, named string) {
	t.Helper()
	var err error
	if kind == "pipe" {
		read, write, err = os.Pipe()
	} else {
		var ends [2]int
		ends, err = syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
		read, write = os.NewFile(uintptr(ends[0]), "read"), os.NewFile(uintptr(ends[1]), "write")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { read.Close(); write.Close() })
	var s syscall.Stat_t
	if err := syscall.Fstat(int(write.Fd()), &s); err != nil {
		t.Fatal(err)
	}
	return read, write, fmt.Sprintf("%d:%d", s.Dev, s.Ino)
}

func TestOnlyTheStreamThatIsNamedIsTheJournals(t *testing.T) {
	for _, kind := range []string{"pipe", "socket"} {
		_, write, named := stream(t, kind)
		_, other, _ := stream(t, kind)
		if !ToJournal(named, write) {
			t.Errorf("%s: the stream that %s names is not recognised", kind, named)
		}
		if ToJournal(named, other) {
			t.Errorf("%s: another stream is taken for the journal's", kind)
		}
		if ToJournal(named, &bytes.Buffer{}) {
			t.Error("memory is taken for the journal's stream")
		}
		for _, bad := range []string{"", ":", named + "1", "9" + named, strings.ReplaceAll(named, ":", ""), named + ":1", " " + named, "-" + named, "x:y"} {
			if ToJournal(bad, write) {
				t.Errorf("%s: %q is taken for %s", kind, bad, named)
			}
		}
	}
}

func TestEachLineHasThePriorityOfItsLevel(t *testing.T) {
	formats := map[string]func(io.Writer) slog.Handler{
		"text": func(w io.Writer) slog.Handler {
			return slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug})
		},
		"json": func(w io.Writer) slog.Handler {
			return slog.NewJSONHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug})
		},
	}
	for name, format := range formats {
		t.Run(name, func(t *testing.T) {
			read, write, _ := stream(t, "pipe")
			log := slog.New(Prefixed(write, format)).With("a", 1).WithGroup("g").With("b", 2)
			log.Debug("debug")
			log.Info("info")
			log.Warn("two\nlines")
			log.Error("error")
			log.Log(t.Context(), slog.LevelError+4, "worse")
			write.Close()
			lines := bufio.NewScanner(read)
			for _, want := range []string{"7", "6", "4", "3", "3"} {
				if !lines.Scan() {
					t.Fatalf("a line with priority %s is missing", want)
				}
				if ok, _ := regexp.MatchString(`^<`+want+`>(time=|{"time":).*[ ,](a=1 g\.b=2|"a":1,"g":{"b":2}})$`, lines.Text()); !ok {
					t.Errorf("want priority %s: %s", want, lines.Text())
				}
			}
			if lines.Scan() {
				t.Errorf("one line too many: %s", lines.Text())
			}
		})
	}
}

func TestALineBelowTheLevelIsNotWritten(t *testing.T) {
	var out bytes.Buffer
	h := Prefixed(&out, func(w io.Writer) slog.Handler {
		return slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelWarn})
	})
	if h.Enabled(t.Context(), slog.LevelInfo) || !h.Enabled(t.Context(), slog.LevelWarn) {
		t.Error("the level of the handlers does not count")
	}
	slog.New(h).Info("quiet")
	if out.Len() > 0 {
		t.Errorf("written: %s", &out)
	}
}
