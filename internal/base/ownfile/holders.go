package ownfile

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// maxHolders bounds the programs that Holders names.
const maxHolders = 4

// lockLine is a line of /proc/locks (proc_locks(5)): the process, the inode, and the first
// octet that is locked.
var lockLine = regexp.MustCompile(`(?m)^\d+: POSIX +ADVISORY +(?:READ|WRITE) (\d+) [0-9a-f]+:[0-9a-f]+:(\d+) (\d+) `)

// Holders returns the other programs that have a lock on the file, each as "NAME (pid N)",
// where /proc shows it. first and last are the octets that count.
func (f *Descriptor) Holders(first, last int64) (all []string) {
	info, err := f.Stat()
	if err != nil {
		return nil
	}
	text, _ := os.ReadFile("/proc/locks") // there may be none
	for _, m := range lockLine.FindAllStringSubmatch(string(text), -1) {
		at, _ := strconv.ParseInt(m[3], 10, 64)
		if m[2] != inode(info) || at < first || at > last || m[1] == strconv.Itoa(os.Getpid()) {
			continue
		}
		name, _ := os.ReadFile("/proc/" + m[1] + "/comm") // it may have ended
		holder := fmt.Sprintf("%q (pid %s)", strings.TrimSpace(string(name)), m[1])
		if len(all) < maxHolders && !slices.Contains(all, holder) {
			all = append(all, holder)
		}
	}
	return all
}
