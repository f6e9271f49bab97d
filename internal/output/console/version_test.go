package console

import (
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"testing"

	"heed/internal/tools/testkit/must"
)

// No build is called by a name that another one has too.
func TestVersion_NamesTheBuild(t *testing.T) {
	t.Parallel()
	build := func(version string, settings ...string) *debug.BuildInfo {
		info := &debug.BuildInfo{Main: debug.Module{Version: version}}
		for i := 0; i < len(settings); i += 2 {
			info.Settings = append(info.Settings, debug.BuildSetting{Key: settings[i], Value: settings[i+1]})
		}
		return info
	}
	const revision = "0123456789abcdef0123456789abcdef01234567"
	for want, info := range map[string]*debug.BuildInfo{
		"v1.2.3":                      build("v1.2.3"),
		"v0.0.0-2026-0123+dirty.hash": build("v0.0.0-2026-0123+dirty", "vcs.revision", revision, "vcs.modified", "true"),
		"commit-0123456789ab":         build("(devel)", "vcs.revision", revision, "vcs.modified", "false"),
		"hash":                        build("(devel)", "vcs.revision", revision, "vcs.modified", "true"),
	} {
		must.Equal(t, versionOf(info, func() string { return "hash" }), want, "%+v", info)
	}
	must.Equal(t, versionOf(build(""), func() string { return "hash" }), "hash", "a build without anything")
}

// The hash is the one that the tool of Go prints.
func TestProgramHash_IsThatOfTheLinker(t *testing.T) {
	t.Parallel()
	path := must.Get(os.Executable())(t)
	out := must.Get(exec.Command("go", "tool", "buildid", path).Output())(t)
	id := strings.TrimSpace(string(out))
	got := programHash()
	must.True(t, got == "build-"+id[strings.LastIndexByte(id, '/')+1:] && len(got) >= 16, "%s of %s", got, id)
	must.Equal(t, buildID([]byte("MZ\x00\xff Go build ID: \"a/b/c\"\n \xff")), "a/b/c", "of another format")
	must.Equal(t, buildID([]byte("\x7fELF\x02\x01 Go\x00\x00 none")), "", "without a note")
}
