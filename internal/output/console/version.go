package console

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
)

// release is the version of a release build; empty in others. The linker sets it
// (-X heed/internal/output/console.release=VERSION), as internal/tools/dist does.
var release string

// Version names the build: the version of a release, the module's version, or the commit
// that it was built from without changes; of any other build a hash of the program.
func Version() string {
	if release != "" {
		return release
	}
	return unreleased()
}

var unreleased = sync.OnceValue(func() string { return versionOf(info(), programHash) })

// info returns what the program says of its build; never nil.
func info() *debug.BuildInfo {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info
	}
	return &debug.BuildInfo{}
}

// versionOf is Version for a build that is not a release; hash returns that of the program.
func versionOf(info *debug.BuildInfo, hash func() string) string {
	v := info.Main.Version
	if v == "(devel)" {
		v = ""
	}
	revision, modified := vcs(info.Settings)
	switch {
	case v != "" && !strings.HasSuffix(v, "+dirty"):
		return v
	case v != "":
		return v + "." + hash()
	case modified == "false" && len(revision) >= 12:
		return "commit-" + revision[:12]
	}
	return hash()
}

// programHash returns a hash of this program: the one that the linker has put into it, which
// `go tool buildid` prints as the last part, else its SHA-256.
func programHash() string {
	path, err := os.Executable()
	if err != nil {
		return "unknown"
	}
	f, err := os.Open(path)
	if err != nil {
		return "unknown"
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, 64<<10))
	if id := buildID(head); err == nil && id != "" {
		return "build-" + id[strings.LastIndexByte(id, '/')+1:]
	}
	h := sha256.New()
	h.Write(head)
	if _, err := io.Copy(h, f); err != nil {
		return "unknown"
	}
	return "sha256-" + hex.EncodeToString(h.Sum(nil)[:10])
}

// buildID returns the build id that the linker of Go has put into the beginning of a program:
// in a note of ELF files, else before the code. Empty: there is none.
func buildID(head []byte) string {
	if _, after, ok := bytes.Cut(head, []byte("\xff Go build ID: \"")); ok {
		id, _, _ := bytes.Cut(after, []byte(`"`))
		return string(id)
	}
	if len(head) < 16 || string(head[:4]) != "\x7fELF" {
		return ""
	}
	var order binary.ByteOrder = binary.LittleEndian
	if head[5] == 2 { // EI_DATA
		order = binary.BigEndian
	}
	const kind = 4 // of the note
	for at := 0; ; at++ {
		next := bytes.Index(head[at:], []byte("Go\x00\x00"))
		if at += next; next < 0 {
			return ""
		}
		if at < 12 || order.Uint32(head[at-4:]) != kind || order.Uint32(head[at-12:]) != 4 {
			continue
		}
		if size := int(order.Uint32(head[at-8:])); size > 0 && size < 200 && at+4+size <= len(head) {
			return string(bytes.TrimRight(head[at+4:at+4+size], "\x00"))
		}
	}
}

// vcs returns the commit that a build was made from, and whether there were changes, "true" or
// "false"; empty where it does not say.
func vcs(settings []debug.BuildSetting) (revision, modified string) {
	for _, s := range settings {
		switch s.Key {
		case "vcs.revision":
			revision = s.Value
		case "vcs.modified":
			modified = s.Value
		}
	}
	return revision, modified
}

// Revision returns the commit that this program was built from; empty when it is unknown.
func Revision() string {
	revision, _ := vcs(info().Settings)
	return revision
}

// Build is the line that --version prints: the version, the commit if it is known, the
// version of Go and the platform.
func Build() string {
	return fmt.Sprintf("heed %s (%s%s %s/%s)", Version(), commitOf(info().Settings), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// commitOf returns the commit of a build, with a comma after it; empty when it is unknown.
func commitOf(settings []debug.BuildSetting) string {
	revision, modified := vcs(settings)
	switch {
	case revision == "":
		return ""
	case modified == "true":
		return fmt.Sprintf("commit %.12s with changes, ", revision)
	}
	return fmt.Sprintf("commit %.12s, ", revision)
}
