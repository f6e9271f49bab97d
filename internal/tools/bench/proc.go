package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// clockTick is the unit of times in /proc/PID/stat: USER_HZ is 100 on every
// platform that Go supports.
const clockTick = 10 * time.Millisecond

// stat is what is read of one /proc/PID/stat.
type stat struct {
	pid, parent int
	cpu         time.Duration // of all its threads, and of children that have ended
	resident    int64         // octets
}

// parseStat reads the text of a /proc/PID/stat: "PID (NAME) STATE PPID ...", where
// NAME may contain any character.
func parseStat(text []byte) (stat, error) {
	open, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if open < 1 || end < open {
		return stat{}, fmt.Errorf("no name in %q", text)
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(text[:open])))
	if err != nil {
		return stat{}, fmt.Errorf("process id: %w", err)
	}
	// Fields are counted from 1 in proc(5); the first one here is the third.
	fields := bytes.Fields(text[end+1:])
	number := func(field int) (n int64) {
		if err == nil && field-3 >= len(fields) {
			err = errors.New("too few fields")
		}
		if err == nil {
			n, err = strconv.ParseInt(string(fields[field-3]), 10, 64)
		}
		return n
	}
	s := stat{pid: pid, parent: int(number(4))}
	for field := 14; field <= 17; field++ { // utime, stime, cutime, cstime
		s.cpu += time.Duration(number(field)) * clockTick
	}
	s.resident = number(24) * int64(os.Getpagesize())
	return s, err
}

// usage returns the CPU time and the resident memory of a process with all its
// children and theirs. Memory that they share is counted for each.
func usage(root int) (cpu time.Duration, resident int64, err error) {
	paths, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, 0, err
	}
	children := map[int][]stat{}
	var tree []stat
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) || err != nil && len(text) == 0 {
			continue // it has ended
		}
		s, err := parseStat(text)
		if err != nil {
			return 0, 0, fmt.Errorf("%s: %w", path, err)
		}
		if s.pid == root {
			tree = append(tree, s)
		}
		children[s.parent] = append(children[s.parent], s)
	}
	if len(tree) == 0 {
		return 0, 0, fmt.Errorf("process %d has ended", root)
	}
	for i := 0; i < len(tree); i++ {
		tree = append(tree, children[tree[i].pid]...)
		cpu += tree[i].cpu
		resident += tree[i].resident
	}
	return cpu, resident, nil
}

// settled waits until a process has done what a load left it to do, such as the
// writing of its log: until it uses no CPU time for a while, at most a second.
func settled(pid int) (cpu time.Duration, resident int64, err error) {
	const pause = 40 * time.Millisecond
	for range int(time.Second / pause) {
		before := cpu
		if cpu, resident, err = usage(pid); err != nil || cpu == before {
			return cpu, resident, err
		}
		time.Sleep(pause)
	}
	return cpu, resident, nil
}
