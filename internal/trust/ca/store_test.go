package ca

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"software.sslmate.com/src/go-pkcs12"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// became checks that there is one result, in this state, and returns it.
func became(t *testing.T, results []Result, want State) Result {
	t.Helper()
	must.Need(t, len(results) == 1 && results[0].State == want, "results %+v, want one %v", results, want)
	r := results[0]
	if bad := want == Failed || want == Skipped; bad != (r.Advice != "") || bad && r.Why == "" || strings.Contains(r.Why+r.Advice, "\n") {
		t.Errorf("%v with reason %q and cure %q", want, r.Why, r.Advice)
	}
	return r
}

// story installs and uninstalls a root as a person does, looking in between;
// trusted asks the store's own programs.
func story(t *testing.T, s Store, a *Authority, trusted func() bool) {
	t.Helper()
	stores, roots := []Store{s}, a.Roots()
	became(t, Uninstall(stores, roots, false), Unchanged)
	planned := became(t, Install(stores, roots, true), Planned)
	must.True(t, planned.Why != "", "the dry run does not say what it would do")
	must.True(t, !trusted(), "a dry run changed the store")
	became(t, Install(stores, roots, false), Done)
	must.True(t, trusted(), "not trusted after the installation")
	became(t, Install(stores, roots, false), Unchanged)
	became(t, Uninstall(stores, roots, false), Done)
	must.True(t, !trusted(), "still trusted after the removal")
	became(t, Uninstall(stores, roots, false), Unchanged)
}

func TestNSSDatabaseOfABrowser(t *testing.T) {
	certutil := testkit.Program(t, "certutil")
	home := filepath.Join(t.TempDir(), "a [home]")
	m := ThisMachine()
	m.home, m.getenv = home, func(string) string { return "" }
	m.look = func(program string) (string, error) { return "", fs.ErrNotExist }
	must.Is(t, len(m.nssStores()), 0, "databases in an empty home")
	// Today's Chromium, a profile that no list has, a directory that is no profile, and a link
	// to one that was found.
	for _, dir := range []string{".local/share/pki/nssdb", ".config/other/mozilla.firefox/profile", ".zen/abc", "work/nssdb"} {
		must.OK(t, os.MkdirAll(filepath.Join(home, dir), 0o700))
		run(t, true, certutil, "-N", "-d", "sql:"+filepath.Join(home, dir), "--empty-password")
	}
	must.OK(t, os.Symlink(filepath.Join(home, ".zen"), filepath.Join(home, ".link")))
	stores := m.nssStores()
	if len(stores) != 3 || !strings.Contains(stores[0].Name, "Chrome") || !strings.Contains(stores[1].Name, "another program") || !strings.Contains(stores[2].Name, "Firefox") {
		t.Fatalf("stores %+v", stores)
	}
	a := must.Get(Open(newDir(t), time.Now))(t)
	db := "sql:" + filepath.Join(home, ".local/share/pki/nssdb")
	story(t, stores[0], a, func() bool {
		out, err := runCommand(certutil, "-V", "-d", db, "-u", "L", "-n", alias(a.chain[0]))
		return err == nil && strings.Contains(string(out), "certificate is valid")
	})
}

// A browser that is installed and has no database yet is named, with what to do.
func TestABrowserWithoutADatabaseIsNamed(t *testing.T) {
	m := ThisMachine()
	m.home, m.getenv = t.TempDir(), func(string) string { return "" }
	m.look = func(program string) (string, error) {
		if program == "chromium" {
			return "/usr/bin/chromium", nil
		}
		return "", fs.ErrNotExist
	}
	a := open(t, noon)
	got := Install(m.nssStores(), a.Roots(), false)
	if len(got) != 1 || got[0].State != Skipped || got[0].Why != "chromium has none yet" || !strings.HasPrefix(got[0].Advice, "mkdir -p -m 700 ~/.pki/nssdb && certutil -N ") {
		t.Errorf("%+v", got)
	}
	got = Uninstall(m.nssStores(), a.Roots(), false)
	must.True(t, len(got) == 1 && got[0].State == Unchanged && got[0].Advice == "", "at the removal: %+v", got)
}

// The search for databases ends after a number of directories, and at a depth.
func TestTheSearchForDatabasesIsBounded(t *testing.T) {
	m := ThisMachine()
	m.home, m.getenv = t.TempDir(), func(string) string { return "" }
	for depth, found := range map[int]int{maxNSSDepth - 1: 1, maxNSSDepth: 0} {
		dir := filepath.Join(m.home, fmt.Sprint(".deep", depth), strings.Repeat("d/", depth))
		must.OK(t, os.MkdirAll(dir, 0o700))
		put(t, filepath.Join(dir, nssFile), nil, 0o600)
		dirs, all := m.nssDirectories(maxNSSDirectories)
		must.True(t, len(dirs) == found && all, "at a depth of %d: %q, %v", depth, dirs, all)
		_, all = m.nssDirectories(5)
		must.True(t, !all, "more than 5 directories were searched")
		must.OK(t, os.RemoveAll(filepath.Join(m.home, fmt.Sprint(".deep", depth))))
	}
}

func TestSystemStoreOfDebian(t *testing.T) {
	testkit.Program(t, "update-ca-certificates")
	local, etc, hooks := t.TempDir(), t.TempDir(), t.TempDir()
	conf := filepath.Join(t.TempDir(), "ca-certificates.conf")
	put(t, conf, []byte("# nothing\n"), 0o644)
	put(t, filepath.Join(local, "other.crt"), pemOf(certificateBlock, issue(t, "Other", nil, nil, nil).cert.Raw), 0o644)
	m := ThisMachine()
	m.euid = 0 // the directories are the test's own
	a := open(t, noon)
	update := []string{"update-ca-certificates", "--certsconf", conf, "--localcertsdir", local, "--etccertsdir", etc, "--hooksdir", hooks}
	run(t, true, update[0], update[1:]...)
	s := m.anchors(anchorPlace{"Debian", local, ".crt", update, append(update[:len(update):len(update)], "--fresh")})
	story(t, s, a, func() bool {
		inBundle := len(certificates(read(t, filepath.Join(etc, "ca-certificates.crt")))) == 2
		links := must.Get(filepath.Glob(filepath.Join(etc, "*")))(t)
		for _, link := range links {
			_, err := os.Stat(link)
			must.True(t, err == nil, "a link to nothing is left: %v", err)
		}
		must.Equal(t, slices.Contains(links, filepath.Join(etc, alias(a.chain[0])+".pem")), inBundle, "bundle and links disagree: %v", links)
		return inBundle
	})
}

func TestJavaTrustStoreIsChangedUnderWhateverName(t *testing.T) {
	if !testkit.Full {
		t.Skip("heed ca install into a Java trust store, in every order of steps: twelve JVMs")
	}
	keytool := testkit.Program(t, "keytool")
	a, home := open(t, noon), t.TempDir()
	other := issue(t, "Other", nil, nil, nil)
	otherFile, _ := write(t, nil, other)
	file := filepath.Join(home, "lib", "security", "cacerts")
	must.OK(t, os.MkdirAll(filepath.Dir(file), 0o755))
	must.OK(t, os.MkdirAll(filepath.Join(home, "bin"), 0o755))
	must.OK(t, os.Symlink(keytool, filepath.Join(home, "bin", "keytool")))
	put(t, otherFile, pemOf(certificateBlock, other.cert.Raw), 0o644)
	run(t, true, keytool, "-importcert", "-noprompt", "-alias", "other", "-file", otherFile, "-keystore", file, "-storepass", javaPassword)
	m := ThisMachine()
	m.getenv = func(name string) string { return map[string]string{"JAVA_HOME": home}[name] }
	stores := m.javaStores()
	must.Need(t, len(stores) == 1, "stores %+v", stores)
	list := func() (all []*x509.Certificate) { // without a JVM, which takes half a second
		all = must.Get(pkcs12.DecodeTrustStore(read(t, file), javaPassword))(t)
		return all
	}
	// A machine that speaks another language; keytool starts in half the time without the compiler.
	t.Setenv("JAVA_TOOL_OPTIONS", "-Duser.language=de -XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
	story(t, stores[0], a, func() bool { return slices.ContainsFunc(list(), a.chain[0].Equal) })

	run(t, true, keytool, "-importcert", "-noprompt", "-alias", "debian:heed.pem", "-file", a.CertPath(), "-keystore", file, "-storepass", javaPassword)
	became(t, Install(stores, a.Roots(), false), Unchanged)
	became(t, Uninstall(stores, a.Roots(), false), Done)
	left := list()
	must.True(t, len(left) == 1 && left[0].Equal(other.cert), "another root was removed, or heed's is left")
}

func TestWithoutPermissionTheCommandsArePrinted(t *testing.T) {
	m := ThisMachine()
	m.euid = 1000
	m.run = func(name string, _ ...string) ([]byte, error) {
		t.Errorf("%s was run", name)
		return nil, nil
	}
	a, dir := open(t, noon), filepath.Join(t.TempDir(), "it's here")
	mkdir(t, dir)
	stores := []Store{m.anchors(anchorPlace{"Test", dir, ".crt", []string{"true"}, []string{"true"}})}
	r := became(t, Install(stores, a.Roots(), false), Skipped)
	want := fmt.Sprintf(`sudo install -m 0644 %s '%s/%s.crt' && sudo true`, a.CertPath(), strings.ReplaceAll(dir, "'", `'\''`), alias(a.chain[0]))
	must.Equal(t, r.Advice, want, "cure")
}

func TestAMissingProgramIsNamedWithItsCure(t *testing.T) {
	a := open(t, noon)
	r := became(t, Install([]Store{{Name: "x", tool: "no-such-program", getTool: "install it"}}, a.Roots(), false), Skipped)
	must.True(t, strings.Contains(r.Why, "no-such-program") && r.Advice == "install it", "%+v", r)
}

func TestAStoresFailureIsReportedAndTheNextIsDone(t *testing.T) {
	a := open(t, noon)
	there := false
	store := func(out string, err error) Store {
		there = false
		return Store{
			Name: "x", tool: "true",
			run: func(string, ...string) ([]byte, error) { there = err == nil && out == ""; return []byte(out), err },
			has: func(*x509.Certificate) (bool, error) { return there, nil },
			add: func(_ *x509.Certificate, file string) [][]string { return [][]string{{"trustit", file}} },
		}
	}
	results := Install([]Store{store("first\nthe database is locked\n", errors.New("exit status 1")), store("", nil), store("no effect", nil)}, a.Roots(), false)
	must.Need(t, len(results) == 3 && results[1].State == Done, "%+v", results)
	r := became(t, results[:1], Failed)
	must.True(t, r.Why == "trustit: exit status 1: the database is locked" && strings.Contains(r.Advice, "trustit "+a.CertPath()),
		"%+v", r)
	became(t, results[1:2], Done)
}

func TestReplacedRootsAreOnlyRemoved(t *testing.T) {
	dir := newDir(t)
	reopen(t, dir, noon)
	renew(t, dir, noon, true)
	renew(t, dir, noon, false)
	a := reopen(t, dir, noon) // signing, next, replaced
	s := []Store{{Name: "x", tool: "true", root: true, has: func(*x509.Certificate) (bool, error) { return false, nil },
		add: func(*x509.Certificate, string) [][]string { return nil }}}
	must.Equal(t, len(Install(s, a.Roots(), false)), 2, "roots installed")
	must.Equal(t, len(Uninstall(s, a.Roots(), false)), 3, "roots removed")
}

// recorded is a system whose programs only write down how they were called.
type recorded struct {
	calls   []string
	trusted bool
}

func (r *recorded) run(name string, args ...string) ([]byte, error) {
	r.calls = append(r.calls, name+" "+strings.Join(args, " "))
	for _, a := range args {
		switch a {
		case "add-trusted-cert", "-addstore":
			r.trusted = true
		case "delete-certificate", "-delstore":
			r.trusted = false
		case "-store":
			if !r.trusted {
				return nil, errors.New("not found")
			}
		case "find-certificate":
			if r.trusted {
				return []byte("SHA-1 hash: " + args[0]), nil
			}
		}
	}
	return nil, nil
}

func TestCommandsOfMacOSAndWindows(t *testing.T) {
	a := open(t, noon)
	hash := sha1Of(a.chain[0])
	cases := map[string]struct{ install, uninstall string }{
		"darwin": {"security add-trusted-cert -d -r trustRoot -k /Library/Keychains/System.keychain " + a.CertPath(),
			"security delete-certificate -Z " + hash + " -t /Library/Keychains/System.keychain"},
		"windows": {"certutil -user -addstore Root " + a.CertPath(), "certutil -user -delstore Root " + hash},
	}
	for goos, c := range cases {
		t.Run(goos, func(t *testing.T) {
			var r recorded
			m := Machine{goos: goos, getenv: func(string) string { return "" }, look: func(string) (string, error) { return "", os.ErrNotExist },
				run: func(name string, args ...string) ([]byte, error) {
					out, err := r.run(name, args...)
					if len(out) > 0 {
						out = []byte("SHA-1 hash: " + hash)
					}
					return out, err
				}}
			stores := m.Stores()
			became(t, Install(stores, a.Roots(), false), Done)
			became(t, Uninstall(stores, a.Roots(), false), Done)
			all := strings.Join(r.calls, "\n")
			must.True(t, strings.Contains(all, c.install) && strings.Contains(all, c.uninstall), "commands were:\n%s", all)
		})
	}
}
