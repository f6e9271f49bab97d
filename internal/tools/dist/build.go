package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// release is what is released.
type release struct {
	version string    // v1.2.3, or v0.0.0-20260102030405-0123456789ab
	date    time.Time // of the commit
}

// versionForm is what -version accepts, and what tags that name a version look like.
var versionForm = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.]+)?$`)

// readRelease returns the version and the time of the checked-out commit.
func readRelease(root, version string, dirty bool) (r release, err error) {
	changes, err := output(root, "git", "status", "--porcelain")
	if err != nil {
		return r, err
	}
	if changes != "" && !dirty {
		return r, errors.New("the checkout has uncommitted changes, so that no commit names what would be built\nCommit them, or add -dirty")
	}
	text, err := output(root, "git", "log", "-1", "--format=%ct %H")
	if err != nil {
		return r, err
	}
	stamp, commit, _ := strings.Cut(text, " ")
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return r, fmt.Errorf("the time of the commit cannot be read: %w", err)
	}
	r.date = time.Unix(seconds, 0).UTC()
	tags, err := output(root, "git", "tag", "--points-at", "HEAD", "--sort=-v:refname")
	if err != nil {
		return r, err
	}
	r.version = version
	for tag := range strings.SplitSeq(tags, "\n") {
		if r.version == "" && versionForm.MatchString(tag) {
			r.version = tag
		}
	}
	if r.version == "" {
		r.version = "v0.0.0-" + r.date.Format("20060102150405") + "-" + commit[:12]
	}
	if changes != "" && version == "" {
		r.version += "+dirty"
	}
	if !versionForm.MatchString(r.version) {
		return r, fmt.Errorf("%q is not a version\nWrite it as v1.2.3 or v1.2.3-rc.1", r.version)
	}
	return r, nil
}

// debian returns the version as Debian writes it: 1.2.3, and 1.2.3~rc.1 before it.
func (r release) debian() string {
	return strings.ReplaceAll(strings.TrimPrefix(r.version, "v"), "-", "~")
}

// target is a system that heed is built for.
type target struct{ os, arch string }

// String returns the target as the go command writes it.
func (t target) String() string { return t.os + "/" + t.arch }

// program returns the name of the program.
func (t target) program() string {
	if t.os == "windows" {
		return "heed.exe"
	}
	return "heed"
}

// allTargets are what a release consists of.
var allTargets = []target{
	{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"}, {"windows", "arm64"},
}

// parseTargets returns the targets that a list names; all of them for an empty list.
func parseTargets(list string) (chosen []target, err error) {
	if list == "" {
		return allTargets, nil
	}
	for name := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(allTargets, func(t target) bool { return t.String() == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no target %q; the targets are %v", name, allTargets)
		}
		chosen = append(chosen, allTargets[i])
	}
	return chosen, nil
}

// build builds heed for t, once in the out directory of the job, and with -verify again in
// a clone. It returns the path of the program.
func (j *job) build(t target) (string, error) {
	path := filepath.Join(j.out, "programs", t.os+"-"+t.arch, t.program())
	if err := j.buildIn(j.root, path, t, nil); err != nil {
		return "", err
	}
	first, err := sum(path)
	if err != nil {
		return "", err
	}
	fmt.Printf("%s  %s\n", first, t)
	if !j.verify {
		return path, nil
	}
	second, err := j.buildAgain(t)
	if err == nil && second != first {
		err = fmt.Errorf("%v is not reproducible: a second build has the sum %s", t, second)
	}
	if err == nil {
		fmt.Printf("%s  %s, built again in another directory\n", second, t)
	}
	return path, err
}

// buildIn builds heed from the checkout at root. No variable of the environment that
// changes the result is passed on.
func (j *job) buildIn(root, path string, t target, env []string) error {
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=true", "-pgo="+filepath.Join("internal", "tools", "bench", "cpu.pgo"),
		"-ldflags", "-s -w -buildid= -X heed/internal/output/console.release="+j.release.version, "-o", path, ".")
	cmd.Dir, cmd.Stderr = root, os.Stderr
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+t.os, "GOARCH="+t.arch, "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=", "GOEXPERIMENT=")
	cmd.Env = append(cmd.Env, env...)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("building heed for %v: %w", t, err)
	}
	return nil
}

// buildAgain builds heed from a clone in another directory with an empty build cache, and
// returns the sum of the program.
func (j *job) buildAgain(t target) (string, error) {
	dir, err := os.MkdirTemp("", "heed-again-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	clone, path := filepath.Join(dir, "another", "checkout"), filepath.Join(dir, t.program())
	if _, err := output(j.root, "git", "clone", "--quiet", j.root, clone); err != nil {
		return "", err
	}
	if err := j.buildIn(clone, path, t, []string{"GOCACHE=" + filepath.Join(dir, "cache")}); err != nil {
		return "", err
	}
	return sum(path)
}

// sum returns the SHA-256 of a file as sha256sum prints it.
func sum(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", sha256.Sum256(data)), nil
}
