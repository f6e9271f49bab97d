package clientenv

import (
	"cmp"
	"context"
	_ "embed" // programs.json
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"heed/internal/base/memo"
)

// Placeholders in the settings of programs, for values that differ between machines.
const (
	ProxyPlaceholder  = "HEED"   // host:port of heed
	BundlePlaceholder = "BUNDLE" // the path of a file with heed's CA and the other roots
)

// Program is a kind of program that fetches, with its own settings, for where the
// variables do not suffice.
type Program struct {
	Kind  string   // what the kind is called
	Names []string // base names of its commands, in lower case and without version numbers; Node 24 gives its process the name MainThread
	Proxy string   // what makes it use heed
	Trust string   // what makes it trust heed's CA; empty: as for other programs
	Usual bool     // worth a line for a command of no known kind
	Wraps bool     // it runs other programs, whose settings count as well

	// Ignoring says which versions of it ignore the proxy variables: "all", or "old node"; empty:
	// none does.
	Ignoring string `json:"ignores"`
	// Sparing are the programs in its language that read variables of their own, by the base
	// names of their files.
	Sparing []string `json:"spares"`
	// Option is set when an option with heed's address makes a program use heed that ignores
	// the variables.
	Option bool
}

// Ignores reports whether a version of it ignores the proxy variables; empty is a version that is
// not known.
func (p *Program) Ignores(version string) bool {
	return p.Ignoring == "all" || p.Ignoring == "old node" && nodeIgnores(version)
}

// nodeIgnores reports whether a version of Node ignores them.
func nodeIgnores(version string) bool {
	var major, minor int
	if n, _ := fmt.Sscanf(version, "%d.%d", &major, &minor); n < 2 {
		return false
	}
	return major < 22 || major == 22 && minor < 21 || major == 23
}

// Spares reports whether a process of the kind, by its command line, reads variables of its
// own all the same, or is given the address of heed there, one of proxies.
func (p *Program) Spares(command, proxies []string) bool {
	if p.Option && slices.ContainsFunc(proxies, func(proxy string) bool {
		return slices.ContainsFunc(command, func(word string) bool { return strings.HasSuffix(word, proxy) })
	}) {
		return true
	}
	for i, word := range command {
		if i == 0 { // "npm install", as npm names itself
			word, _, _ = strings.Cut(word, " ")
		} else if strings.HasPrefix(word, "-") {
			continue
		}
		name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(word), filepath.Ext(word)), "-cli")
		if slices.Contains(p.Sparing, name) {
			return true
		}
		if i > 0 {
			return false
		}
	}
	return false
}

// versionTime is the most that a program may take to print its version.
const versionTime = 10 * time.Second

// VersionOf returns the first version number that the program at path prints in an environment
// when it is asked for its version; empty when there is none.
func VersionOf(ctx context.Context, path string, environ []string) string {
	ctx, cancel := context.WithTimeout(ctx, versionTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, cmp.Or(map[string]string{"go": "version"}[filepath.Base(path)], "--version"))
	cmd.Env = environ
	cmd.WaitDelay = time.Second
	out, _ := cmd.CombinedOutput() // the status of a program of a run may be collected by another
	return versionNumber().FindString(string(out))
}

var versionNumber = memo.Expression(`\d+(\.\d+)+`)

// programsText is the list of the kinds.
//
//go:embed programs.json
var programsText []byte

// programs are the kinds of programs with settings of their own, and the kind of all others.
var programs = sync.OnceValue(func() (all struct {
	Program []Program
	Others  Program
}) {
	if err := json.Unmarshal(programsText, &all); err != nil {
		panic(err) // it is built in
	}
	return all
})

// Programs returns the kinds of programs with settings of their own.
func Programs() []Program { return programs().Program }

// OtherPrograms returns the kind of all programs that are not in Programs.
func OtherPrograms() Program { return programs().Others }

// ProgramOf returns the kind of a command, by the base name of its path; OtherPrograms and
// false when it is not known. A version number at the end of the name does not matter.
func ProgramOf(command string) (Program, bool) {
	name := strings.TrimSuffix(strings.ToLower(filepath.Base(command)), ".exe")
	for _, name := range []string{name, strings.TrimRight(name, "0123456789.-")} {
		i := slices.IndexFunc(Programs(), func(p Program) bool { return slices.Contains(p.Names, name) })
		if i >= 0 {
			return Programs()[i], true
		}
	}
	return OtherPrograms(), false
}
