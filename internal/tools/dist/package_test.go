package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"heed/internal/base/state"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// regexpBold finds a character that is printed twice or underlined.
func regexpBold() *regexp.Regexp { return regexp.MustCompile(`.\x08(.)`) }

func debianFile(t *testing.T, name string) string {
	t.Helper()
	return testkit.Read(t, filepath.Join("debian", name))
}

// systemd accepts the unit, and rates what the service could reach below 2.0 of 10.
func TestUnit_IsAcceptedAndConfined(t *testing.T) {
	unit := debianFile(t, "heed.service")
	path := filepath.Join(t.TempDir(), "heed.service")
	program := must.Get(os.Executable())(t)
	here := strings.ReplaceAll(unit, "/usr/bin/heed", program) // it must exist
	here = strings.Replace(here, "Documentation=man:heed(1)\n", "", 1)
	testkit.Write(t, path, here)
	must.Lack(t, printed(t, "", "systemd-analyze", "verify", "--man=no", path), "heed.service", "systemd-analyze verify")
	out := printed(t, "", "systemd-analyze", "security", "--offline=true", "--threshold=20", "--no-pager", path)
	must.Contain(t, out, "Overall exposure level for heed.service", "systemd-analyze security")
	t.Log(out[strings.Index(out, "Overall"):])
}

// The unit, the user and the scripts agree with heed on where its state is.
func TestPackage_AgreesOnTheStateDirectory(t *testing.T) {
	name := filepath.Base(state.ServiceDir)
	for file, part := range map[string]string{
		"heed.service":  "Environment=HEED_STATE=%S/" + name + "\nStateDirectory=" + name + "\n",
		"heed.sysusers": " " + state.ServiceDir + "\n",
		"postinst":      "install -d -o heed -g heed -m 0700 " + state.ServiceDir + "\n",
		"postrm":        "\nstate=" + state.ServiceDir + "\n",
	} {
		must.Contain(t, debianFile(t, file), part, "%s lacks %q", file, part)
	}
}

// The programs that the unit and the image run are commands of heed, with their flags.
func TestPackage_CommandsExist(t *testing.T) {
	docker := testkit.Read(t, "Dockerfile")
	lines := regexp.MustCompile(`(?m)^Exec[A-Za-z]+=/usr/bin/heed (.*)$`).FindAllStringSubmatch(debianFile(t, "heed.service"), -1)
	lines = append(lines, regexp.MustCompile(`CMD \["heed", (.*)\]`).FindAllStringSubmatch(docker, -1)...)
	must.Need(t, len(lines) == 4, "the unit and the image have %d commands", len(lines))
	for _, m := range lines {
		words := strings.Fields(strings.NewReplacer(`"`, "", ",", "").Replace(m[1]))
		top := outline(t)
		at := slices.IndexFunc(top.Verbs, func(v *verb) bool { return v.Path[0] == words[0] })
		if at < 0 {
			t.Errorf("heed has no command %s", words[0])
			continue
		}
		for _, word := range words[1:] {
			must.True(t, !strings.HasPrefix(word, "--") || slices.Contains(flagWords(top.Verbs[at]), word),
				"heed %s has no flag %s", words[0], word)
		}
	}
	for _, part := range []string{"\nFROM scratch\n", "\nUSER 65532:65532\n", "\nVOLUME /state\n"} {
		must.Contain(t, docker, part, "the Dockerfile lacks %q", part)
	}
}

// A purge removes settings, policies and the CA key, and leaves the record.
func TestPurge_LeavesTheRecord(t *testing.T) {
	for _, c := range []struct {
		name string
		had  []string
		left []string
	}{
		{"a service that was used", []string{"ca.pem", "ca-key.pem", "ca-next/ca.pem", "policies.db", "turns.json", "granted.json", "name", "lock", "clients/bundle.pem", ".hidden", "a file with a blank"},
			[]string{"audit.db", "audit.db.tail", "audit.key", "audit-2026.db", "newer/audit.db"}},
		{"a service that never ran", nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			dir, etc := filepath.Join(root, "var", "heed"), filepath.Join(root, "etc", "heed")
			for _, name := range append(append([]string{"../../etc/heed/users"}, c.had...), c.left...) {
				path := filepath.Join(dir, name)
				must.OK(t, errors.Join(os.MkdirAll(dir, 0o700), os.MkdirAll(filepath.Dir(path), 0o700)))
				testkit.Write(t, path, name)
			}
			script := strings.NewReplacer("state="+state.ServiceDir, "state="+dir, "/etc/heed", etc, "command -v deb-systemd-helper", "false", "/run/systemd/system", "/none").
				Replace(debianFile(t, "postrm"))
			said := printed(t, script, "sh", "-s", "purge")
			left := strings.Fields(printed(t, `cd "`+dir+`" 2>/dev/null && find . -type f -printf '%P\n' || :`, "sh"))
			want := slices.Clone(c.left)
			slices.Sort(left)
			slices.Sort(want)
			must.Same(t, left, want, "left")
			must.Equal(t, strings.Contains(said, dir), (len(c.left) > 0), "the purge says %q", said)
			for _, gone := range []string{etc, dir} {
				_, err := os.Stat(gone)
				must.True(t, (gone != dir || len(c.left) > 0 == (err == nil)) && (gone != etc || err != nil), "%s: %v", gone, err)
			}
		})
	}
}

func TestScripts_AreShell(t *testing.T) {
	for _, name := range []string{"postinst", "prerm", "postrm"} {
		text := debianFile(t, name)
		printed(t, text, "sh", "-n")
		for _, word := range []string{"update-ca-certificates", "certutil", "ca install"} {
			must.Lack(t, text, word, "%s touches a trust store: %s", name, word)
		}
	}
}

// A later version is later for dpkg, too.
func TestVersions_AreInOrder(t *testing.T) {
	ordered := []string{
		"v0.0.0-20260101000000-ffffffffffff", "v0.0.0-20260102000000-000000000000", "v0.1.0-alpha", "v0.1.0-rc.1", "v0.1.0", "v0.1.1", "v0.10.0", "v1.0.0+dirty",
	}
	for i := 1; i < len(ordered); i++ {
		a, b := release{version: ordered[i-1]}.debian(), release{version: ordered[i]}.debian()
		must.True(t, versionForm.MatchString(ordered[i]), "%s is not a version", ordered[i])
		must.OK(t, exec.Command(testkit.Program(t, "dpkg"), "--compare-versions", a, "lt", b).Run(), "%s before %s", a, b)
	}
	for _, bad := range []string{"1.2.3", "v1.2", "v1.2.3 ", "v1.2.3-a b", "", "v1.2.3\nx"} {
		must.True(t, !versionForm.MatchString(bad), "%q is a version", bad)
	}
}

func TestParseTargets(t *testing.T) {
	all, err := parseTargets("")
	must.True(t, err == nil && len(all) == 6, "%v, %v", all, err)
	some, err := parseTargets("windows/arm64,linux/amd64")
	must.True(t, err == nil && slices.Equal(some, []target{{"windows", "arm64"}, {"linux", "amd64"}}), "%v, %v", some, err)
	must.Fail(t, must.Err(parseTargets("linux/riscv64")), "darwin/arm64")
}

// Archives of the same files have the same bytes.
func TestArchives_AreReproducible(t *testing.T) {
	members := []member{{"heed", 0o755, []byte("program")}, {"README.md", 0o644, []byte("text")}}
	date := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for name, pack := range map[string]func([]member, time.Time) ([]byte, error){"tar": tarOf, "zip": zipOf} {
		first, err1 := pack(members, date)
		second, err2 := pack(members, date)
		err := errors.Join(err1, err2)
		must.True(t, err == nil && bytes.Equal(first, second), "%s: the archives differ, %v", name, err)
	}
	packed, _ := tarOf(members, date)
	z := must.Get(gzip.NewReader(bytes.NewReader(packed)))(t)
	r := tar.NewReader(z)
	for _, m := range members {
		h, err := r.Next()
		must.True(t, err == nil && h.Name == "heed/"+m.name && h.Mode == m.mode && h.ModTime.Equal(date) && h.Uid == 0,
			"%+v, %v", h, err)
	}
	packed, _ = zipOf(members, date)
	zr, err := zip.NewReader(bytes.NewReader(packed), int64(len(packed)))
	must.Need(t, err == nil && len(zr.File) == 2 && zr.File[0].Mode() == 0o755, "%v", err)
	f := must.Get(zr.File[0].Open())(t)
	text, err := io.ReadAll(f)
	must.True(t, string(text) == "program", "%q, %v", text, err)
}

// Every module that is linked into heed has its licence in the copyright file.
func TestLicences_OfEverythingThatIsLinked(t *testing.T) {
	root := testkit.Root(t)
	modules, err := linkedModules(root)
	must.Need(t, err == nil && len(modules) >= 20, "%d modules, %v", len(modules), err)
	text := must.Get(licences(root, modules))(t)
	for _, m := range modules {
		must.Contain(t, string(text), "\n"+m.Path+" "+m.Version+", ", "the licence of %s is missing", m.Path)
	}
	for _, part := range []string{"no licence for heed itself", "The Go standard library go1.", "The Go Authors"} {
		must.Contain(t, string(text), part, "the copyright file lacks %q", part)
	}
}

func TestLicences_AModuleWithoutOneIsAnError(t *testing.T) {
	_, err := licences(testkit.Root(t), []module{{"example.org/unlicensed", "v1.0.0", t.TempDir()}})
	must.Fail(t, err, "example.org/unlicensed v1.0.0")
}

func TestLicenceNames(t *testing.T) {
	for name, is := range map[string]bool{
		"LICENSE": true, "LICENCE.md": true, "license.txt": true, "COPYING": true, "NOTICE": true, "LICENSE-LOGO": true, "PATENTS": true,
		"licenser.go": false, "README.md": false, "notices_test.go": false,
	} {
		must.Equal(t, licenceName.MatchString(name), is, name)
	}
}
