package bypass

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// server is a web server as it is shipped, with the site's files.
type server struct {
	name  string
	start func(t testing.TB, root string) (addr string)
}

var servers = []server{
	{"nginx", startNginx},
	{"apache", startApache},
	{"go", startGo},
	{"python", startPython},
	{"express", startExpress},
}

func startNginx(t testing.TB, root string) string {
	origin := testkit.NewOrigin(t, testkit.Site{Name: "nginx.test", Config: fmt.Sprintf("location / { root %q; }", root)})
	return origin.Addr("nginx.test", "http")
}

// startGo serves files without a ServeMux, which would redirect most spellings.
func startGo(t testing.TB, root string) string {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	s := &http.Server{Handler: http.FileServer(http.Dir(root))}
	served := make(chan struct{})
	go func() {
		defer close(served)
		s.Serve(l)
	}()
	t.Cleanup(func() {
		s.Close()
		<-served
	})
	return l.Addr().String()
}

func startPython(t testing.TB, root string) string {
	return start(t, exec.Command(testkit.Program(t, "python3"), "-u", "-m", "http.server", "0",
		"--bind", "127.0.0.1", "--directory", root), regexp.MustCompile(`port (\d+)`))
}

func startExpress(t testing.TB, root string) string {
	modules := filepath.Join(testkit.Root(t), ".build/express/node_modules")
	if _, err := os.Stat(modules); err != nil {
		t.Fatal("there is no express in .build; run `sh internal/tools/testkit/all.sh` once: it installs what the tests need")
	}
	cmd := exec.Command(testkit.Node(t), "testdata/express.cjs", root)
	cmd.Env = append(os.Environ(), "NODE_PATH="+modules)
	return start(t, cmd, regexp.MustCompile(`port (\d+)`))
}

// tomcatJar is the servlet container of Debian's libtomcat10-embed-java.
const tomcatJar = "/usr/share/java/tomcat10-embed-core.jar"

// startTomcat starts a servlet container, whose JVM compiles little: it does not run long.
func startTomcat(t testing.TB, root string) string {
	if _, err := os.Stat(tomcatJar); err != nil {
		t.Fatal("there is no embedded Tomcat; run `sh internal/tools/testkit/all.sh` once: it installs what the tests need")
	}
	return start(t, exec.Command(testkit.Program(t, "java"), "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC",
		"-cp", tomcatJar, "testdata/Static.java", root, t.TempDir()), regexp.MustCompile(`^port (\d+)`))
}

// start runs a server until the test ends; it prints where it listens.
func start(t testing.TB, cmd *exec.Cmd, port *regexp.Regexp) string {
	t.Helper()
	out := must.Get(cmd.StdoutPipe())(t)
	testkit.NotOrphaned(cmd)
	must.OK(t, cmd.Start())
	found, ended := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(ended)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if m := port.FindStringSubmatch(lines.Text()); m != nil && len(found) == 0 {
				found <- m[1]
			}
		}
		io.Copy(io.Discard, out)
	}()
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-ended
		cmd.Wait()
	})
	select {
	case p := <-found:
		return net.JoinHostPort("127.0.0.1", p)
	case <-time.After(testkit.Patience):
		t.Fatalf("%v did not say where it listens", cmd.Args)
		return ""
	}
}

// apacheConf is a static site with the directive that lets "%2F" through.
const apacheConf = `ServerRoot %[1]q
ServerName apache.test
PidFile %[1]s/httpd.pid
ErrorLog %[1]s/error.log
Listen %[2]s
LoadModule mpm_event_module %[4]s/mod_mpm_event.so
LoadModule authz_core_module %[4]s/mod_authz_core.so
LoadModule dir_module %[4]s/mod_dir.so
LoadModule mime_module %[4]s/mod_mime.so
TypesConfig /dev/null
AddType text/html .html
AllowEncodedSlashes NoDecode
DocumentRoot %[3]q
<Directory %[3]q>
	Require all granted
</Directory>
`

// apacheModules is where Debian's apache2-bin has them.
const apacheModules = "/usr/lib/apache2/modules"

func startApache(t testing.TB, root string) string {
	return startAt(t, func(addr string) *exec.Cmd {
		dir := t.TempDir()
		conf := fmt.Sprintf(apacheConf, dir, addr, root, apacheModules)
		if os.Geteuid() == 0 {
			conf += "User nobody\nGroup nogroup\n" // it serves nothing as root
		}
		file := filepath.Join(dir, "httpd.conf")
		must.OK(t, os.WriteFile(file, []byte(conf), 0o600))
		return exec.Command(testkit.Program(t, "apache2"), "-f", file, "-D", "FOREGROUND")
	})
}

// startAt runs a server until the test ends that takes no open socket.
func startAt(t testing.TB, command func(addr string) *exec.Cmd) string {
	t.Helper()
	addr := testkit.FreeAddr(t)
	var said bytes.Buffer
	cmd := command(addr)
	cmd.Stderr, cmd.Stdout = &said, &said
	testkit.NotOrphaned(cmd)
	must.OK(t, cmd.Start())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		cmd.Wait()
	}()
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM) // its children end with it
		<-ended
	})
	awaitListener(t, addr, ended, &said)
	return addr
}

// awaitListener waits until a connection to addr succeeds.
func awaitListener(t testing.TB, addr string, ended <-chan struct{}, said *bytes.Buffer) {
	t.Helper()
	retry := time.NewTicker(20 * time.Millisecond)
	defer retry.Stop()
	late := time.After(testkit.Patience)
	for {
		if c, err := net.Dial("tcp", addr); err == nil {
			c.Close()
			return
		}
		select {
		case <-retry.C:
		case <-ended:
			t.Fatalf("the server ended instead of listening:\n%s", said.String())
		case <-late:
			t.Fatalf("nothing listens on %s", addr)
		}
	}
}
