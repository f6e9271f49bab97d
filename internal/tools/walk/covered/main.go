// Command covered is heed's command, for heed/internal/tools/walk, which builds it with
// -cover: SIGUSR1 sets the counts of its statements to 0, and SIGUSR2 writes them to the
// folder HEED_WALK_COUNTS. It says so on stderr, with the number of the signal.
// HEED_WALK_DEFAULTS is the proxy.toml with heed's defaults.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"runtime/coverage"
	"syscall"

	"heed/internal/command"
)

func main() {
	defaults, err := os.ReadFile(os.Getenv("HEED_WALK_DEFAULTS"))
	if err == nil {
		err = coverage.WriteMetaDir(os.Getenv("HEED_WALK_COUNTS"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGUSR1, syscall.SIGUSR2)
	go obey(asked, os.Getenv("HEED_WALK_COUNTS"))
	os.Exit(command.Main(os.Args[1:], defaults))
}

// obey clears or writes the counts, as the signals ask for it.
func obey(asked <-chan os.Signal, dir string) {
	for n := 1; ; n++ {
		err := error(nil)
		if s := <-asked; s == syscall.SIGUSR1 {
			err = coverage.ClearCounters()
		} else {
			err = coverage.WriteCountersDir(dir)
		}
		fmt.Fprintf(os.Stderr, "walk: signal %d obeyed (%v)\n", n, err)
	}
}
