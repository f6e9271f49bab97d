// Command profiled is heed's command that writes a CPU profile of itself, for the
// profile with which heed is built (heed/internal/tools/bench). HEED_BENCH_PROFILE is the
// file to write, HEED_BENCH_DEFAULTS the proxy.toml with heed's defaults.
package main

import (
	"fmt"
	"os"
	"runtime/pprof"

	"heed/internal/command"
)

func main() {
	status, err := run(os.Getenv("HEED_BENCH_PROFILE"), os.Getenv("HEED_BENCH_DEFAULTS"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}

func run(profile, defaults string) (status int, err error) {
	text, err := os.ReadFile(defaults)
	if err != nil {
		return 0, err
	}
	file, err := os.Create(profile)
	if err != nil {
		return 0, err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return 0, err
	}
	status = command.Main(os.Args[1:], text)
	pprof.StopCPUProfile()
	return status, file.Close()
}
