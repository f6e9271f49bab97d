package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// profiledCases are the loads that the profile for builds is made of.
const profiledCases = "plain-1k,tls-h1,tls-new"

// makeProfile writes the profile for builds: heed's CPU profiles under each of the
// loads, merged.
func makeProfile(ctx context.Context, o options) error {
	o.heed, o.pgo, o.contenders, o.cases = filepath.Join(o.dir, "profiled"), "off", "heed", profiledCases
	o.rounds, o.slice = 1, o.profileSlice
	if err := build(ctx, o.root, o.heed, "./internal/tools/bench/profiled", o.pgo); err != nil {
		return err
	}
	b, err := newBench(ctx, &o)
	if err != nil {
		return err
	}
	var profiles []string
	plain := b.contenders[0].command
	b.contenders[0].command = func(ctx context.Context, w workload, at place) (*exec.Cmd, error) {
		cmd, err := plain(ctx, w, at)
		if err == nil {
			path := filepath.Join(o.dir, w.name+".pprof")
			profiles = append(profiles, path)
			cmd.Env = append(cmd.Env, "HEED_BENCH_PROFILE="+path, "HEED_BENCH_DEFAULTS="+filepath.Join(o.root, "proxy.toml"))
		}
		return cmd, err
	}
	rep, err := b.run(ctx)
	if err != nil {
		return err
	}
	if n := rep.wrong(); n > 0 {
		return fmt.Errorf("%d wrong answers", n)
	}
	merged, err := exec.CommandContext(ctx, "go", append([]string{"tool", "pprof", "-proto"}, profiles...)...).Output()
	if err != nil {
		return fmt.Errorf("merging the profiles: %w", err)
	}
	return os.WriteFile(o.profile, merged, 0o644)
}
