package seal

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// ordinary is the user that tests run as when the tests are root's.
const ordinary = 65534

// rootInChroot is the name of the tests as root in a chroot.
const rootInChroot = "root in a chroot"

// outside is the machine outside of the sealed runs: a web server, which knows requests
// that heed sent by its Via field, and services that no run may reach.
type outside struct {
	t      testing.TB
	dir    string // that any user may enter
	heed   string
	config string
	port   string // of the web server

	inChroot bool // runs are started in a chroot

	judged  atomic.Int64 // requests that came through heed
	mu      sync.Mutex
	escaped []string // what came in another way
}

func newOutside(t testing.TB) *outside {
	t.Helper()
	dir := must.Get(os.MkdirTemp("/tmp", "seal"))(t)
	t.Cleanup(func() { os.RemoveAll(dir) })
	o := &outside{t: t, dir: dir, heed: filepath.Join(dir, "heed")}
	text := must.Get(os.ReadFile(testkit.Binary(t)))(t)
	must.OK(t, os.WriteFile(o.heed, text, 0o755))
	site := httptest.NewServer(http.HandlerFunc(o.serve))
	t.Cleanup(site.Close)
	ca := testkit.NewCA(t)
	cert, key := ca.Leaf(t, "site.test")
	pair := must.Get(tls.LoadX509KeyPair(cert, key))(t)
	secure := httptest.NewUnstartedServer(http.HandlerFunc(o.serve))
	secure.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	secure.StartTLS()
	t.Cleanup(secure.Close)
	_, o.port, _ = net.SplitHostPort(site.Listener.Addr().String())
	var places strings.Builder
	for _, at := range []string{"site.test:80", "site.test:8081", "192.0.2.10:80", "192.0.2.10:8080", "[2001:db8::10]:80"} {
		fmt.Fprintf(&places, "%q = %q\n", at, "127.0.0.1:"+o.port)
	}
	fmt.Fprintf(&places, "%q = %q\n", "site.test:443", secure.Listener.Addr().String())
	trusted := testkit.Write(t, filepath.Join(dir, "site-ca.pem"), testkit.Read(t, ca.File))
	must.OK(t, os.Chmod(trusted, 0o644))
	o.config = filepath.Join(dir, "proxy.toml")
	must.OK(t, os.WriteFile(o.config, []byte("[upstream]\nca_file = \"site-ca.pem\"\n[upstream.resolve]\n"+places.String()), 0o644))
	o.service("unix", filepath.Join(dir, "outside.sock"))
	o.service("unix", "@seal-"+filepath.Base(dir))
	must.OK(t, os.Chmod(filepath.Join(dir, "outside.sock"), 0o777))
	must.OK(t, os.Chmod(dir, 0o755))
	return o
}

// serve answers as the site: pages below /p are disallowed, and must not be requested.
func (o *outside) serve(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Via") == "" && !strings.HasPrefix(r.UserAgent(), "heed") { // its own requests for robots.txt
		o.escape("a request without heed: " + r.Method + " " + r.RequestURI)
	}
	o.judged.Add(1)
	switch path := r.URL.Path; {
	case path == "/robots.txt":
		fmt.Fprint(w, "User-agent: *\nDisallow: /p\n")
		return
	case strings.HasPrefix(path, "/p"):
		o.escape("a disallowed page: " + r.RequestURI)
	case strings.HasSuffix(path, "/info/refs"): // for git
		fmt.Fprintf(w, "%040d\trefs/heads/the-page\n", 7)
		return
	case strings.HasSuffix(path, "/npm/package"):
		fmt.Fprint(w, `{"name": "package", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": {"name": "package", "version": "1.0.0", "description": "the page"}}}`)
		return
	case strings.Contains(path, "/simple/"): // for pip
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, `<!DOCTYPE html><a href="package-1.0-py3-none-any.whl">package-1.0-py3-none-any.whl</a>`)
		return
	}
	fmt.Fprintln(w, "the page")
}

// reachedOnlyThroughHeed reports what came in another way.
func (o *outside) reachedOnlyThroughHeed(t *testing.T) {
	t.Helper()
	must.True(t, o.judged.Load() != 0, "no request came through heed")
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, what := range o.escaped {
		t.Errorf("reached from inside: %s", what)
	}
}

func (o *outside) escape(what string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.escaped = append(o.escaped, what)
}

// service listens for connections that no sealed run may make.
func (o *outside) service(network, address string) string {
	l := must.Get(net.Listen(network, address))(o.t)
	o.t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			o.escape("a connection to " + address)
			c.Close()
		}
	}()
	return l.Addr().String()
}

// chroot runs a program, given by its arguments, in a chroot with the programs of this
// machine. Its directory is no mount, and $SEAL_DIR/tree/outside is not below it.
const chroot = `set -e
mount -t tmpfs none "$SEAL_DIR/tree"
cd "$SEAL_DIR/tree"
touch outside
mkdir root
for dir in /bin /sbin /lib /lib64 /usr /etc /opt /dev /proc /sys /root; do
	if [ -L "$dir" ]; then
		cp -d "$dir" "root$dir"
	elif [ -d "$dir" ]; then
		mkdir "root$dir"
		mount --rbind "$dir" "root$dir"
	fi
done
mkdir root/tmp
mount --bind /tmp root/tmp
exec chroot ${CHROOT_USER:+--userspec="$CHROOT_USER"} root "$@"`

// run runs a command sealed, as a user, and returns what it and heed printed.
func (o *outside) run(uid uint32, flags []string, command ...string) (stdout, stderr string, err error) {
	o.t.Helper()
	state := filepath.Join(o.dir, fmt.Sprintf("state-%d", uid))
	must.OK(o.t, os.MkdirAll(state, 0o700))
	if os.Geteuid() == 0 {
		must.OK(o.t, os.Chown(state, int(uid), int(uid)))
	}
	args := append([]string{"run", "--config", o.config, "--sealed"}, flags...)
	program := []string{o.heed}
	if o.inChroot {
		program = []string{"unshare", "--mount", "sh", "-c", chroot, "sh", o.heed}
		must.OK(o.t, os.MkdirAll(filepath.Join(o.dir, "tree"), 0o755))
	}
	cmd := exec.Command(program[0], slices.Concat(program[1:], args, []string{"--"}, command)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH") + ":/usr/sbin:/sbin", "HOME=" + state, "HEED_STATE=" + state, testkit.RaceOptions, "SEAL_DIR=" + o.dir, "SEAL_PORT=" + o.port,
		"NODE_PATH=" + filepath.Join(testkit.Root(o.t), ".build/clients/node_modules")}
	cmd.Dir = o.dir
	switch {
	case os.Geteuid() != 0 || uid == 0:
	case o.inChroot:
		cmd.Env = append(cmd.Env, fmt.Sprintf("CHROOT_USER=%d:%d", uid, uid))
	default:
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	}
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	return out.String(), errs.String(), err
}

// users returns the users to test as.
func users() map[string]uint32 {
	if os.Geteuid() != 0 {
		return map[string]uint32{"user": uint32(os.Geteuid())}
	}
	return map[string]uint32{"user": ordinary, "root": 0}
}

// Each line of testdata/ways.py is one way out: its result must be the expected one, and
// the web server and the services outside are not reached except through heed.
func TestNoWayOutButHeed(t *testing.T) {
	python := testkit.Program(t, "python3")
	script := must.Get(os.ReadFile("testdata/ways.py"))(t)
	all := users()
	if os.Geteuid() == 0 {
		all[rootInChroot] = 0
	}
	for name, uid := range all {
		t.Run(name, func(t *testing.T) {
			o := newOutside(t)
			o.inChroot = name == rootInChroot
			file := filepath.Join(o.dir, "ways.py")
			must.OK(t, os.WriteFile(file, script, 0o644))
			interpreter := python
			if uid != 0 {
				interpreter = "/usr/bin/python3" // a user's own cannot be entered by others
			}
			out, errs, err := o.run(uid, nil, interpreter, file)
			t.Logf("%s%s", out, errs)
			must.Need(t, err == nil, "the run failed: %v", err)
			ways := 0
			for line := range strings.Lines(out) {
				if strings.HasPrefix(line, "FAIL") {
					t.Error(strings.TrimSpace(line))
				}
				ways++
			}
			must.True(t, ways >= 40, "%d ways were tried, not 40", ways)
			o.reachedOnlyThroughHeed(t)
			for _, want := range []string{"sealed: no network exit but heed", "udp/443"} {
				must.Contain(t, errs, want, "the summary does not contain %q", want)
			}
		})
	}
}

// Where the machine does not permit a seal, the command is not run, and the error names what
// forbids it.
func TestWithoutASealNothingRuns(t *testing.T) {
	o := newOutside(t)
	refused := func(name, out, errs string, err error, want string) {
		t.Helper()
		must.True(t, err != nil && out == "" && strings.Contains(errs, "cannot seal a run") && strings.Contains(errs, want),
			"%s: %v\n%s\n%s", name, err, out, errs)
		t.Logf("%s: %s", name, errs)
	}
	for _, limit := range []string{"user.max_user_namespaces", "user.max_net_namespaces", "user.max_mnt_namespaces"} {
		state := filepath.Join(o.dir, limit)
		// The limits are those of a user namespace of the test.
		cmd := exec.Command("unshare", "--user", "--map-root-user", "sh", "-c", `echo 0 >"/proc/sys/`+strings.ReplaceAll(limit, ".", "/")+`" && exec "$@"`,
			"sh", o.heed, "run", "--config", o.config, "--sealed", "--", "echo", "it runs")
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + o.dir, "HEED_STATE=" + state, testkit.RaceOptions}
		var out, errs strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &errs
		err := cmd.Run()
		refused(limit, out.String(), errs.String(), err, "The setting "+limit+" is 0: raise it with `sysctl -w "+limit+"=1000`")
	}
	if os.Geteuid() != 0 {
		return // chroot(2) is root's
	}
	o.inChroot = true
	out, errs, err := o.run(ordinary, nil, "echo", "it runs")
	refused("a user in a chroot", out, errs, err, "in a chroot, where only root can seal")
}

// The services of the machine are reached at the ports and sockets that are permitted.
func TestPermittedPortsAndSockets(t *testing.T) {
	o := newOutside(t)
	socket := filepath.Join(o.dir, "permitted.sock")
	answer := func(network, address string) string {
		l := must.Get(net.Listen(network, address))(t)
		s := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "the service") })}}
		s.Start()
		t.Cleanup(s.Close)
		return l.Addr().String()
	}
	_, port, _ := net.SplitHostPort(answer("tcp", "127.0.0.1:0"))
	answer("unix", socket)
	must.OK(t, os.Chmod(socket, 0o777))
	curl := testkit.Program(t, "curl")
	ask := curl + " -sS --unix-socket " + socket + " http://service.test/"
	// In a mount namespace of its own a run can put another socket at the permitted path.
	instead := "unshare -Urm sh -c 'mount --bind " + filepath.Join(o.dir, "outside.sock") + " " + socket + " && " + ask + "'; true"
	out, errs, err := o.run(ordinary, []string{"--allow-host-port", port, "--allow-socket", socket}, "sh", "-c",
		curl+" -sS http://127.0.0.1:"+port+"/; "+ask+"; "+instead)
	if err != nil || out != "the service\nthe service\n" || !strings.Contains(errs, "Couldn't connect") && !strings.Contains(errs, "refused") {
		t.Errorf("%v\n%s\n%s", err, out, errs)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, what := range o.escaped {
		t.Errorf("reached from inside: %s", what)
	}
}

// Processes that wait for a connection hold no threads of heed run, also when they are
// killed, and those that are left are connected.
func TestProcessesThatWaitHoldNoThreads(t *testing.T) {
	testkit.Program(t, "python3")
	o := newOutside(t)
	file := testkit.Write(t, filepath.Join(o.dir, "waiting.py"), testkit.Read(t, "testdata/waiting.py"))
	must.OK(t, os.Chmod(file, 0o644))
	out, errs, err := o.run(ordinary, nil, "/usr/bin/python3", file)
	var threads, status int
	if n, _ := fmt.Sscanf(out, "threads %d last %d", &threads, &status); err != nil || n != 2 || threads > 300 || status != 0 {
		t.Errorf("%v\n%s\n%s", err, out, errs)
	}
	t.Log(out)
}

// A sealed run inside a sealed run: its requests are judged by both.
func TestSealedInSealed(t *testing.T) {
	o := newOutside(t)
	curl := testkit.Program(t, "curl")
	script := `mkdir -m 700 "$HOME/inner" && HEED_STATE="$HOME/inner" ` + o.heed + ` run -q --no-config --sealed -- env -i ` + curl + ` -sS http://site.test/a http://site.test/p`
	out, errs, err := o.run(ordinary, nil, "sh", "-c", script)
	if err != nil || !strings.HasPrefix(out, "the page\n") || !strings.Contains(out, "Refused by heed") || !strings.Contains(errs, "site.test: 2 requests") && !strings.Contains(errs, "to site.test") {
		t.Errorf("%v\n%s\n%s", err, out, errs)
	}
}
