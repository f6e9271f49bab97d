package command_test

import (
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// pod is a user and the groups under which a platform runs heed, and a volume of it.
type pod struct {
	t        *testing.T
	uid, gid uint32
	fsGroup  int
	volume   string
	state    string
	program  string // heed, where the user can run it
}

// newPod makes a volume as a platform does: it belongs to root and, with the setgid bit, to a
// group that may write.
func newPod(t *testing.T, uid, gid uint32, fsGroup int, mode fs.FileMode) *pod {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can run heed as other users")
	}
	base := t.TempDir()
	p := &pod{t: t, uid: uid, gid: gid, fsGroup: fsGroup, volume: filepath.Join(base, "vol"), program: filepath.Join(base, "heed")}
	p.state = filepath.Join(p.volume, "heed")
	p.do(os.Mkdir(p.volume, 0o700), os.Chown(p.volume, 0, fsGroup), os.Chmod(p.volume, mode),
		exec.Command("cp", testkit.Binary(t), p.program).Run(), os.Chmod(p.program, 0o755)) // a file that this process writes cannot run while another test forks
	return p
}

func (p *pod) do(all ...error) {
	p.t.Helper()
	must.OK(p.t, errors.Join(all...))
}

// options run heed as the user of the pod.
func (p *pod) options(variables ...string) testkit.Options {
	return testkit.Options{State: p.state, Env: variables, Change: func(cmd *exec.Cmd, config string) {
		p.do(os.Chmod(config, 0o644))
		for _, path := range []string{config, p.program} { // t.TempDir is closed to others
			for dir := filepath.Dir(path); dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
				p.do(os.Chmod(dir, 0o755))
			}
		}
		cmd.Path = p.program
		if cmd.SysProcAttr == nil {
			cmd.SysProcAttr = &syscall.SysProcAttr{}
		}
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: p.uid, Gid: p.gid, Groups: []uint32{uint32(p.fsGroup)}}
	}}
}

// attach does what the kubelet does with a volume each time a pod starts: everything gets the
// group and its permissions, directories the setgid bit too.
func (p *pod) attach() {
	p.t.Helper()
	p.do(filepath.WalkDir(p.volume, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		mode := info.Mode().Perm() | 0o060
		if d.IsDir() {
			mode |= 0o010 | fs.ModeSetgid
		}
		return errors.Join(os.Lchown(path, -1, p.fsGroup), os.Chmod(path, mode))
	}))
}

// once starts heed, sends it a request, and stops it.
func (p *pod) once(site string, variables ...string) *testkit.Heed {
	p.t.Helper()
	h := testkit.Start(p.t, p.options(variables...))
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: h.Addr}), DisableKeepAlives: true}}
	r := must.Get(client.Get(site + "/open"))(p.t)
	r.Body.Close()
	must.Equal(p.t, r.StatusCode, http.StatusOK, "status")
	h.Signal(syscall.SIGTERM)
	h.Exit()
	return h
}

// refused starts a heed that must not serve, and checks what it says.
func (p *pod) refused(options testkit.Options, parts ...string) {
	p.t.Helper()
	h := testkit.Launch(p.t, options)
	must.Equal(p.t, h.Exit(), 2, "status")
	for _, part := range parts {
		must.Contain(p.t, h.Stderr(), part)
	}
}

// On a volume of a platform, which sets the permissions of a group whenever a pod starts, heed
// starts again only where the operator trusts the group.
func TestHeed_StartsAgainOnAVolumeOfAPlatform(t *testing.T) {
	t.Parallel()
	site := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(site.Close)
	for name, c := range map[string]struct {
		uid, gid uint32
		fsGroup  int
		group    string
		mode     fs.FileMode
	}{
		"Kubernetes fsGroup":         {1000, 1000, 2000, "2000", 0o775 | fs.ModeSetgid},
		"emptyDir":                   {1000, 1000, 2000, "2000", 0o777 | fs.ModeSetgid},
		"OpenShift's arbitrary user": {1000660000, 0, 1000660000, "1000660000", 0o775 | fs.ModeSetgid},
		"root:0 0770":                {1000660000, 0, 0, "0", 0o770},
		"root":                       {0, 0, 2000, "2000", 0o775 | fs.ModeSetgid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPod(t, c.uid, c.gid, c.fsGroup, c.mode)
			group := "HEED_STATE_GROUP=" + c.group
			p.once(site.URL, group)
			key := testkit.Read(t, filepath.Join(p.state, "ca-key.pem"))
			p.attach()
			p.refused(p.options("KUBERNETES_SERVICE_HOST=192.0.2.1"), "can be changed by its group (gid "+c.group, "heed help containers")
			p.refused(p.options("HEED_STATE_GROUP=4711"), "can be changed by its group (gid "+c.group)

			h := p.once(site.URL, group)
			for _, part := range []string{"members of a group are trusted", "ca-key.pem", "stored policies are discarded", "the record is whole"} {
				must.Contain(t, h.Stderr(), part)
			}
			p.do(filepath.WalkDir(p.state, func(path string, d fs.DirEntry, err error) error {
				if info, err := d.Info(); err != nil || info.Mode().Perm()&0o020 != 0 {
					t.Errorf("%s: %v, %v", path, info.Mode(), err)
				}
				return err
			}))
			must.Equal(t, testkit.Read(t, filepath.Join(p.state, "ca-key.pem")), key, "the CA is another")
			if h = p.once(site.URL, group); strings.Contains(h.Stderr(), "could be") || !strings.Contains(h.Stderr(), "members of a group are trusted") {
				t.Errorf("without a change of the platform:\n%s", h.Stderr())
			}
		})
	}
}

// What a member of the group may have put into the state directory is not used, and a changed
// record is no record.
func TestHeed_DoesNotUseWhatAGroupPutIntoTheStateDirectory(t *testing.T) {
	t.Parallel()
	site := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(site.Close)
	for name, c := range map[string]struct {
		plant func(state string) error
		says  string
	}{
		"a link":        {func(s string) error { return os.Symlink("/etc/passwd", filepath.Join(s, "pace.json")) }, "pace.json is not a regular file"},
		"a foreign key": {func(s string) error { return os.Chown(filepath.Join(s, "ca-key.pem"), 4711, -1) }, "ca-key.pem belongs to user 4711"},
		"a pipe":        {func(s string) error { return syscall.Mkfifo(filepath.Join(s, "x"), 0o660) }, "x is not a regular file"},
		"a second name": {func(s string) error {
			return os.Link(filepath.Join(s, "ca-key.pem"), filepath.Join(filepath.Dir(s), "copy"))
		}, "ca-key.pem has a second name"},
		"a changed record": {func(s string) error {
			return exec.Command(testkit.Program(t, "sqlite3"), filepath.Join(s, "audit.db"), "UPDATE outcome SET status = 204").Run()
		}, "is not whole"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPod(t, 1000, 1000, 2000, 0o775|fs.ModeSetgid)
			p.once(site.URL)
			p.do(c.plant(p.state))
			p.attach()
			p.refused(p.options("HEED_STATE_GROUP=2000"), c.says)
		})
	}
	p := newPod(t, 1000, 1000, 2000, 0o775|fs.ModeSetgid)
	p.refused(p.options("HEED_STATE_GROUP=staff"), "HEED_STATE_GROUP=", "is not the number of a group")
}
