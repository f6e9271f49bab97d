package run

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"heed/internal/base/memo"
	"heed/internal/config/clientenv"
	"heed/internal/sealed/process"
)

// programs are those of a run that ignore the proxy variables. The zero value is ready. look
// is for one goroutine.
type programs struct {
	looked map[string]bool // paths of programs that were looked at
	asking sync.WaitGroup  // for versions
	mu     sync.Mutex
	found  []ignoring
}

// look notes the program of a process when it ignores the variables. Where that depends on
// its version, it is run to print that, in an environment without variables. proxies are
// the addresses of heed.
func (p *programs) look(pid int, proxies []string) {
	path := process.Program(pid)
	kind, _ := clientenv.ProgramOf(path)
	if kind.Ignoring == "" || p.looked[path] || kind.Spares(process.Arguments(pid), proxies) {
		return
	}
	memo.Set(&p.looked, path, true)
	if kind.Ignores("") {
		p.add(ignoring{Program: path})
		return
	}
	p.asking.Go(func() {
		var version string
		for _, at := range []string{process.Path(pid, "exe"), path} { // it may be in another root directory, and the process may have ended
			version = cmp.Or(version, clientenv.VersionOf(context.Background(), at, []string{}))
		}
		if kind.Ignores(version) { // one without a version is not named
			p.add(ignoring{path, version})
		}
	})
}

func (p *programs) add(i ignoring) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.found = append(p.found, i)
}

// ignoring returns the programs, at most maxBypassed.
func (p *programs) ignoring() []ignoring {
	p.asking.Wait()
	slices.SortFunc(p.found, func(a, b ignoring) int { return cmp.Compare(a.Program, b.Program) })
	return append([]ignoring{}, p.found[:min(len(p.found), maxBypassed)]...)
}
