// Command dist makes what heed is distributed as. It is run in a checkout:
//
//	go run ./internal/tools/dist release            # archives, packages and SHA256SUMS
//	go run ./internal/tools/dist -verify release    # and builds each program twice
//	go run ./internal/tools/dist deb                # Debian packages only
//	go run ./internal/tools/dist image              # the files of a container image
//	go run ./internal/tools/dist docs               # the man page and the completions
//
// Programs are static and reproducible: the same commit and the same Go make the same
// octets, in any directory. Times in archives are that of the commit. Packages are made by
// nfpm (github.com/goreleaser/nfpm), which is run as a tool and is not a dependency of
// heed. The man page and the completions are made from the grammar of the command line, as
// github.com/alecthomas/kong has it,
// and the licences of other people's code are collected from the module cache.
//
// The unit, the scripts of the packages, the Dockerfile and the compose example are files
// in this folder.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

// job is one call of this command.
type job struct {
	root       string // the checkout
	out        string // where results are written
	release    release
	maintainer string
	targets    []target
	verify     bool
	outline    *verb
	licences   []byte
}

const usage = "write: go run ./internal/tools/dist [-out DIR] [-version VERSION] [-targets OS/ARCH,...] [-verify] [-dirty] release|deb|image|docs"

func run(args []string) error {
	flags := flag.NewFlagSet("dist", flag.ContinueOnError)
	out := flags.String("out", ".build/dist", "write the results to this `directory`")
	version := flags.String("version", "", "the `version`, as v1.2.3; without it, the tag of the commit, or a version made of its time")
	maintainer := flags.String("maintainer", "", "the maintainer of the packages, as `NAME <ADDRESS>`; without it, the author of the commit")
	only := flags.String("targets", "", "build only these, as `linux/amd64,windows/arm64`")
	verify := flags.Bool("verify", false, "build each program a second time, in another directory and with an empty cache, and compare")
	dirty := flags.Bool("dirty", false, "build a checkout with uncommitted changes")
	if err := flags.Parse(args); err != nil {
		return err
	}
	do := map[string]func(*job) error{"release": (*job).makeRelease, "deb": (*job).makeDebs, "image": (*job).makeImage, "docs": (*job).makeDocs}[flags.Arg(0)]
	if do == nil || flags.NArg() != 1 {
		return errors.New(usage)
	}
	j, err := newJob(*out, *version, *maintainer, *dirty)
	if err != nil {
		return err
	}
	j.verify = *verify
	if j.targets, err = parseTargets(*only); err != nil {
		return err
	}
	return do(j)
}

func newJob(out, version, maintainer string, dirty bool) (*job, error) {
	mod, err := output("", "go", "env", "GOMOD")
	if err != nil {
		return nil, err
	}
	j := &job{root: filepath.Dir(mod), maintainer: maintainer}
	if j.out, err = filepath.Abs(out); err != nil {
		return nil, err
	}
	if j.release, err = readRelease(j.root, version, dirty); err != nil {
		return nil, err
	}
	if j.maintainer == "" {
		if j.maintainer, err = output(j.root, "git", "log", "-1", "--format=%an <%ae>"); err != nil {
			return nil, err
		}
	}
	if j.outline, err = readOutline(); err != nil {
		return nil, err
	}
	modules, err := linkedModules(j.root)
	if err != nil {
		return nil, err
	}
	if j.licences, err = licences(j.root, modules); err != nil {
		return nil, err
	}
	return j, os.MkdirAll(j.out, 0o755)
}

// makeDocs writes the man page and the completions.
func (j *job) makeDocs() error {
	return j.writeDocs(j.out)
}

// Names of the documents in an archive.
const (
	manName  = "heed.1"
	bashName = "heed.bash"
	zshName  = "_heed"
)

func (j *job) writeDocs(dir string) error {
	return errors.Join(
		os.WriteFile(filepath.Join(dir, manName), manPage(j.outline, j.release.version, j.release.date), 0o644),
		os.WriteFile(filepath.Join(dir, bashName), bashCompletion(j.outline), 0o644),
		os.WriteFile(filepath.Join(dir, zshName), zshCompletion(j.outline), 0o644),
	)
}

// output runs a program in dir and returns what it prints, without the last newline.
func output(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return strings.TrimSuffix(string(out), "\n"), nil
}
