package testkit

import (
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// LeavesFrom is the address that upstream proxies connect to sites from. A site
// that accepts no other address can be reached only through them.
const LeavesFrom = "127.0.0.2"

// LetsUpstreamIn is for Site.Config: the site forbids itself to all others.
const LetsUpstreamIn = "allow " + LeavesFrom + "; deny all;"

// UpstreamUser and UpstreamPassword are what an upstream proxy asks for that asks
// for credentials.
const (
	UpstreamUser     = "news"
	UpstreamPassword = "hunter2-upstream"
)

// Upstream is a real proxy between heed and the sites.
type Upstream struct {
	Addr string // "127.0.0.1:PORT"
	TLS  string // where Squid speaks TLS; empty for others

	t      testing.TB
	log    string // file of what it did
	cmd    *exec.Cmd
	exited chan struct{}
	stderr *output
}

// NewSquid starts a Squid that resolves names, which heed cannot, and presents a
// certificate of ca's where it speaks TLS. With asks, it wants
// UpstreamUser's credentials.
func NewSquid(t testing.TB, ca *CA, asks bool, names ...string) *Upstream {
	t.Helper()
	cert, key := ca.Leaf(t, "127.0.0.1")
	files := map[string]string{"cert.pem": read(t, cert), "key.pem": read(t, key), "users": passwordLine(t)}
	return squid(t, Program(t, "squid"), files, names, func(u *Upstream, dir string) string {
		u.TLS = FreeAddr(t)
		return u.squidConf(dir, asks)
	})
}

// NewCache starts a Squid whose configuration is what conf returns, with {{Addr}} for its
// address. conf is given the folder of the files, and may add to it. It resolves names, which heed cannot.
func NewCache(t testing.TB, program string, files map[string]string, names []string, conf func(dir string) string) *Upstream {
	t.Helper()
	return squid(t, program, files, names, func(u *Upstream, dir string) string {
		return strings.ReplaceAll(conf(dir), "{{Addr}}", u.Addr) + fmt.Sprintf(squidCommon, dir)
	})
}

// NewAsking starts a Squid with further lines of configuration, by which it asks a heed. It
// decrypts TLS where bump is not nil, by certificates of that CA, and trusts sites with one of
// site's: that takes the Squid that all.sh unpacks.
func NewAsking(t testing.TB, lines string, bump, site *CA, names ...string) *Upstream {
	t.Helper()
	port, program, files := "", "squid", map[string]string{"site-ca.pem": read(t, site.File)}
	if bump != nil {
		folder := filepath.Join(Root(t), ".build", "squid", "usr")
		program = filepath.Join(folder, "sbin", "squid")
		files["bump.pem"], files["bump-key.pem"] = read(t, bump.File), bump.keyPEM(t)
		certgen := filepath.Join(folder, "lib", "squid", "security_file_certgen")
		certs := filepath.Join(t.TempDir(), "certs")
		lines += fmt.Sprintf("sslcrtd_program %s -s DIR/certs -M 4MB\nssl_bump bump all\ntls_outgoing_options cafile=DIR/site-ca.pem\n", certgen)
		port = " ssl-bump tls-cert=DIR/bump.pem tls-key=DIR/bump-key.pem generate-host-certificates=on"
		if out, err := exec.Command(certgen, "-c", "-s", certs, "-M", "4MB").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for _, name := range []string{"certs/index.txt", "certs/size"} {
			files[name] = read(t, filepath.Join(filepath.Dir(certs), name))
		}
	} else {
		program = Program(t, program)
	}
	return squid(t, program, files, names, func(u *Upstream, dir string) string {
		if err := os.MkdirAll(filepath.Join(dir, "certs", "certs"), 0o755); err != nil {
			t.Fatal(err)
		}
		conf := "http_port " + u.Addr + port + "\n" + lines + "http_access allow all\ncache deny all\ncache_mem 8 MB\n"
		return strings.ReplaceAll(conf, "DIR/", dir+"/") + fmt.Sprintf(squidCommon, dir)
	})
}

// squid starts the program with what conf returns when its address is known.
func squid(t testing.TB, program string, files map[string]string, names []string, conf func(u *Upstream, dir string) string) *Upstream {
	t.Helper()
	dir, cred := proxyDir(t)
	u := &Upstream{t: t, log: filepath.Join(dir, "access.log")}
	files = maps.Clone(files)
	files["hosts"] = ""
	for _, name := range names {
		files["hosts"] += "127.0.0.1 " + name + "\n"
	}
	for range 5 { // between our look and its start, others may take a port
		u.Addr = FreeAddr(t)
		files["squid.conf"] = conf(u, dir)
		for name, text := range files {
			path := filepath.Join(dir, name)
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		owned(t, dir, cred)
		_, port, _ := net.SplitHostPort(u.Addr)
		// Names of shared memory begin with that of the service.
		cmd := exec.Command(program, "-N", "-n", fmt.Sprintf("heed%dx%s", os.Getpid(), port), "-f", filepath.Join(dir, "squid.conf"))
		NotOrphaned(cmd)
		cmd.Dir, cmd.SysProcAttr.Credential = dir, cred
		if u.start(cmd) {
			return u
		}
	}
	log, _ := os.ReadFile(filepath.Join(dir, "cache.log")) // none when it did not come that far
	t.Fatalf("squid did not start:\n%s%s", u.stderr.text(), log)
	return nil
}

// squidCommon is what the Squids of tests have in common. It logs a line per request,
// when it is over: method, URL or host:port, user and status.
const squidCommon = `hosts_file %[1]s/hosts
logformat short %%rm %%ru %%un %%>Hs
strip_query_terms off
access_log stdio:%[1]s/access.log short
cache_log %[1]s/cache.log
pid_filename none
max_filedescriptors 1024
pinger_enable off
visible_hostname squid.test
shutdown_lifetime 0 seconds
`

// squidConf is a Squid that stores nothing.
func (u *Upstream) squidConf(dir string, asks bool) string {
	access := "http_access allow all"
	if asks {
		access = "auth_param basic program /usr/lib/squid/basic_ncsa_auth " + dir + "/users\nacl known proxy_auth REQUIRED\nhttp_access allow known"
	}
	return fmt.Sprintf(`http_port %s
https_port %s tls-cert=%[3]s/cert.pem tls-key=%[3]s/key.pem
cache deny all
cache_mem 8 MB
tcp_outgoing_address %[4]s
%[5]s
`, u.Addr, u.TLS, dir, LeavesFrom, access) + fmt.Sprintf(squidCommon, dir)
}

// proxyDir makes a folder for a proxy that will not run as root. cred is who it
// runs as then; nil: as the test.
func proxyDir(t testing.TB) (dir string, cred *syscall.Credential) {
	t.Helper()
	if os.Geteuid() != 0 {
		return t.TempDir(), nil
	}
	account, err := user.Lookup("proxy") // every Debian has it
	if err != nil {
		t.Fatal(err)
	}
	uid, _ := strconv.Atoi(account.Uid)
	gid, _ := strconv.Atoi(account.Gid)
	if dir, err = os.MkdirTemp("", "heed-squid-"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chown(dir, uid, gid); err != nil {
		t.Fatal(err)
	}
	return dir, &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

// owned gives dir and all in it to the user of cred; nil: to no other.
func owned(t testing.TB, dir string, cred *syscall.Credential) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil || cred == nil {
			return err
		}
		return os.Chown(path, int(cred.Uid), int(cred.Gid))
	})
	if err != nil {
		t.Fatal(err)
	}
}

func passwordLine(t testing.TB) string {
	t.Helper()
	hash, err := exec.Command(Program(t, "openssl"), "passwd", "-apr1", UpstreamPassword).Output()
	if err != nil {
		t.Fatal(err)
	}
	return UpstreamUser + ":" + string(hash)
}

func read(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// NewSOCKS starts a microsocks, which resolves names as this machine does. With
// asks, it wants UpstreamUser's credentials.
func NewSOCKS(t testing.TB, asks bool) *Upstream {
	t.Helper()
	u := &Upstream{t: t}
	for range 5 {
		u.Addr = FreeAddr(t)
		_, port, _ := net.SplitHostPort(u.Addr)
		args := []string{"-i", "127.0.0.1", "-p", port, "-b", LeavesFrom}
		if asks {
			args = append(args, "-u", UpstreamUser, "-P", UpstreamPassword)
		}
		cmd := exec.Command(Program(t, "microsocks"), args...)
		NotOrphaned(cmd)
		if u.start(cmd) {
			return u
		}
	}
	t.Fatalf("microsocks did not start:\n%s", u.stderr.text())
	return nil
}

// start runs the proxy and reports whether it serves.
func (u *Upstream) start(cmd *exec.Cmd) bool {
	u.t.Helper()
	u.cmd, u.exited, u.stderr = cmd, make(chan struct{}), newOutput()
	cmd.Stdout, cmd.Stderr = u.stderr, u.stderr
	if err := cmd.Start(); err != nil {
		u.t.Fatalf("starting %s: %v", cmd.Path, err)
	}
	go func(exited chan struct{}) {
		defer close(exited)
		cmd.Wait()
	}(u.exited)
	u.t.Cleanup(u.Stop)
	for end := time.Now().Add(Patience); time.Now().Before(end); {
		select {
		case <-u.exited:
			return false
		case <-time.After(10 * time.Millisecond):
		}
		if c, err := net.Dial("tcp", u.Addr); err == nil {
			c.Close()
			return true
		}
	}
	return false
}

// Stop ends the proxy. It may have ended before.
func (u *Upstream) Stop() {
	u.cmd.Process.Signal(syscall.SIGTERM) // Squid removes its shared memory then
	select {
	case <-u.exited:
	case <-time.After(Patience):
		u.cmd.Process.Kill()
		<-u.exited
	}
}

// Log is what the proxy says it has done so far: Squid a line for each request
// and for each tunnel that is closed, microsocks one for each connection.
func (u *Upstream) Log() string {
	if u.log == "" {
		return u.stderr.text()
	}
	text, err := os.ReadFile(u.log)
	if err != nil && !os.IsNotExist(err) {
		u.t.Fatal(err)
	}
	return string(text)
}

// AwaitLog waits until the log has each of the texts.
func (u *Upstream) AwaitLog(texts ...string) {
	u.t.Helper()
	for end := time.Now().Add(Patience); ; time.Sleep(10 * time.Millisecond) {
		log, missing := u.Log(), ""
		for _, text := range texts {
			if !strings.Contains(log, text) {
				missing = text
			}
		}
		if missing == "" {
			return
		}
		if time.Now().After(end) {
			u.t.Fatalf("the upstream proxy's log does not say %q:\n%s", missing, log)
		}
	}
}
