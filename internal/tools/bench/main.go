package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// options are the flags.
type options struct {
	cases, contenders    string
	growth               string
	most                 int
	rounds               int
	slice                time.Duration
	heed, against, squid string
	json, svg            string
	pgo, profile         string
	quiet                bool
	profileSlice         time.Duration
	root, dir            string
}

// defaultProfile is the profile for builds, relative to the top folder.
const defaultProfile = "internal/tools/bench/cpu.pgo"

func main() {
	if status, ran := runRole(); ran {
		os.Exit(status)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command(ctx, parse()); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func parse() options {
	var o options
	flag.StringVar(&o.cases, "cases", "", "cases, separated by commas (default all: "+names(workloads(fullScale), func(w workload) string { return w.name })+")")
	flag.StringVar(&o.contenders, "contenders", "", "contenders, separated by commas (default all: "+names(contenders("", "-", ""), func(c contender) string { return c.name })+")")
	flag.StringVar(&o.growth, "growth", "", "instead of cases: heed's cost as these grow, separated by commas, or all ("+names(growth(fullScale), func(s series) string { return s.name })+")")
	flag.IntVar(&o.most, "most", fullScale.Most, "the largest point of --growth; 10000000 is the next of the record")
	flag.IntVar(&o.rounds, "rounds", 12, "slices of each contender per case")
	flag.DurationVar(&o.slice, "slice", 1500*time.Millisecond, "length of a slice")
	flag.StringVar(&o.heed, "heed", "", "measure this binary (default: built from this checkout)")
	flag.StringVar(&o.against, "against", "", "a second heed binary, such as one of an older commit")
	flag.StringVar(&o.squid, "squid", "", "a Squid with OpenSSL (default: the one in .build/squid, or the installed one)")
	flag.StringVar(&o.json, "json", "", "write the report to this file")
	flag.StringVar(&o.svg, "svg", "", "draw a chart into this file")
	flag.StringVar(&o.pgo, "pgo", "", "the profile to build with, or off (default "+defaultProfile+" if it exists)")
	flag.StringVar(&o.profile, "profile", "", "only make a profile for builds, in this file")
	flag.DurationVar(&o.profileSlice, "profile-slice", 30*time.Second, "length of each load of --profile")
	flag.BoolVar(&o.quiet, "quiet", false, "print no progress")
	flag.Parse()
	if flag.NArg() > 0 || o.rounds < 1 {
		flag.Usage()
		os.Exit(2)
	}
	return o
}

func names[T any](all []T, name func(T) string) string {
	var list []string
	for _, item := range all {
		list = append(list, name(item))
	}
	return strings.Join(list, ",")
}

func command(ctx context.Context, o options) (err error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return err
	}
	o.root = filepath.Dir(strings.TrimSpace(string(out)))
	if o.dir, err = os.MkdirTemp("", "heed-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(o.dir)
	if err := os.Chmod(o.dir, 0o755); err != nil { // Squid may run as another user
		return err
	}
	if o.profile != "" {
		return makeProfile(ctx, o)
	}
	b, err := newBench(ctx, &o)
	if err != nil {
		return err
	}
	rep := newReport(o.rounds, o.slice)
	rep.Profile = o.pgo
	ran, err := b.run(ctx)
	rep.Cases, rep.Growth = ran.Cases, ran.Growth // also of a run that was interrupted
	return errors.Join(err, publish(rep, o))
}

// publish prints the report and writes the files.
func publish(rep report, o options) error {
	if err := rep.table(os.Stdout); err != nil {
		return err
	}
	if o.json != "" {
		if err := rep.writeJSON(o.json); err != nil {
			return err
		}
	}
	if o.svg != "" {
		chart := rep.svg()
		if len(rep.Growth) > 0 {
			chart = rep.growthSVG()
		}
		if err := os.WriteFile(o.svg, []byte(chart), 0o644); err != nil {
			return err
		}
	}
	if n := rep.wrong(); n > 0 {
		return fmt.Errorf("%d wrong answers", n)
	}
	return nil
}

// newBench builds what is measured and chooses cases and contenders.
func newBench(ctx context.Context, o *options) (*bench, error) {
	b := &bench{dir: o.dir, scale: fullScale, rounds: o.rounds, slice: o.slice, progress: func(string) {}}
	if !o.quiet {
		b.progress = func(text string) { fmt.Fprintf(os.Stderr, "%s %s\n", time.Now().Format(time.TimeOnly), text) }
	}
	if err := b.chooseLoads(o); err != nil {
		return nil, err
	}
	var err error
	if o.pgo == "" {
		o.pgo = "off"
		if path := filepath.Join(o.root, defaultProfile); exists(path) {
			o.pgo = path
		}
	}
	if b.self, err = os.Executable(); err != nil {
		return nil, err
	}
	if o.pgo != "off" { // the proxies in Go get the profile too
		b.self = filepath.Join(o.dir, "bench")
		if err := build(ctx, o.root, b.self, "./internal/tools/bench", o.pgo); err != nil {
			return nil, err
		}
	}
	if o.heed == "" {
		o.heed = filepath.Join(o.dir, "heed")
		if err := build(ctx, o.root, o.heed, ".", o.pgo); err != nil {
			return nil, err
		}
	}
	squid := findSquid(o.root, o.squid)
	all := contenders(o.heed, o.against, squid)
	if b.contenders, err = choose(all, func(c contender) string { return c.name }, o.contenders); err != nil {
		return nil, err
	}
	for _, c := range b.contenders {
		if missing := c.missing(squid); missing != "" {
			return nil, fmt.Errorf("no %s; see `go doc ./internal/tools/bench`, or leave %s out of --contenders", missing, c.name)
		}
	}
	return b, nil
}

// chooseLoads chooses the cases, or the series in their place.
func (b *bench) chooseLoads(o *options) (err error) {
	if o.growth == "" {
		b.cases, err = choose(workloads(b.scale), func(w workload) string { return w.name }, o.cases)
		return err
	}
	if o.growth == "all" {
		o.growth = ""
	}
	b.scale.Most, o.contenders = o.most, "heed"
	b.series, err = choose(growth(b.scale), func(s series) string { return s.name }, o.growth)
	return err
}

// findSquid returns the path of Squid: the one named, the one unpacked into .build,
// or the installed one.
func findSquid(root, named string) string {
	if named != "" {
		return named
	}
	if unpacked := filepath.Join(root, ".build/squid/usr/sbin/squid"); exists(unpacked) {
		return unpacked
	}
	return program("squid")
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// build builds a package of the checkout with the profile pgo, or "off".
func build(ctx context.Context, root, target, pkg, pgo string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-pgo="+pgo, "-o", target, pkg)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", pkg, err, out)
	}
	return nil
}
