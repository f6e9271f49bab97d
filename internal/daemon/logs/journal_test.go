package logs

import (
	"bufio"
	"io"
	"log/slog"
	"os"
	"regexp"
	"testing"

	"heed/internal/tools/testkit/must"
)

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
			read, write := must.Two(os.Pipe())(t)
			defer read.Close()
			log := slog.New(format(Prefixed{write})).With("a", 1).WithGroup("g").With("b", 2)
			log.Debug("debug")
			log.Info("info")
			log.Warn("two\nlines")
			log.Error("error")
			log.Log(t.Context(), slog.LevelError+4, "worse")
			write.Close()
			lines := bufio.NewScanner(read)
			for _, want := range []string{"7", "6", "4", "3", "3"} {
				must.Need(t, lines.Scan(), "a line with priority %s is missing", want)
				ok, _ := regexp.MatchString(`^<`+want+`>(time=|{"time":).*[ ,](a=1 g\.b=2|"a":1,"g":{"b":2}})$`, lines.Text())
				must.True(t, ok, "want priority %s: %s", want, lines.Text())
			}
			must.True(t, !lines.Scan(), "one line too many: %s", lines.Text())
		})
	}
}
