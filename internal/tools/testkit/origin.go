package testkit

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// Site is one site of an Origin, served over HTTP and HTTPS alike.
type Site struct {
	// Name is the host name, ending in .test; the certificate is for it.
	Name string
	// Robots is the text of /robots.txt; empty: the site answers 404 for it.
	Robots string
	// Files are further pages, path ("/page.html") to content.
	Files map[string]string
	// Redirects answer 302, path to Location.
	Redirects map[string]string
	// Config is extra text for nginx's server block, for what the fields
	// above cannot say ("location = /gone { return 410; }").
	Config string
	// Expired makes the HTTPS side show a certificate that has ended.
	Expired bool
}

// Origin is a running nginx with its sites.
type Origin struct {
	CA *CA // behind every site's certificate

	t      testing.TB
	dir    string
	sites  []Site
	ports  map[string]string // "site.test:443" -> "127.0.0.1:PORT"
	client *http.Client
	log    *hitLog
	stderr *output
}

// NewOrigin starts a real nginx that serves the sites until the test ends.
func NewOrigin(t testing.TB, sites ...Site) *Origin {
	t.Helper()
	o := &Origin{CA: NewCA(t), t: t, dir: t.TempDir(), sites: sites, ports: map[string]string{}, stderr: newOutput()}
	o.log = &hitLog{logged: map[string]chan int{}}
	o.client = &http.Client{Timeout: Patience, Transport: o.direct(), CheckRedirect: never}
	t.Cleanup(o.client.CloseIdleConnections)
	listeners := o.listen()
	for _, site := range sites {
		o.writeFiles(site)
	}
	config := filepath.Join(o.dir, "nginx.conf")
	if err := os.WriteFile(config, o.config(), 0o600); err != nil {
		t.Fatalf("writing nginx's configuration: %v", err)
	}
	o.start(config, listeners)
	o.mark() // its answer shows that nginx serves
	return o
}

// listen opens one port for each side of each site. nginx inherits the open
// sockets, so that no other process can take a port in between.
func (o *Origin) listen() []*net.TCPListener {
	var listeners []*net.TCPListener
	for _, site := range o.sites {
		for _, port := range []string{"80", "443"} {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				o.t.Fatalf("opening a port for %s: %v", site.Name, err)
			}
			o.ports[net.JoinHostPort(site.Name, port)] = l.Addr().String()
			listeners = append(listeners, l.(*net.TCPListener))
		}
	}
	return listeners
}

func (o *Origin) writeFiles(site Site) {
	files := map[string]string{}
	for path, content := range site.Files {
		files[path] = content
	}
	if site.Robots != "" {
		files["/robots.txt"] = site.Robots
	}
	for path, content := range files {
		file := filepath.Join(o.Root(site.Name), filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			o.t.Fatalf("making the folder of %s: %v", file, err)
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			o.t.Fatalf("writing %s: %v", file, err)
		}
	}
}

// start runs nginx as one process and gives it the sockets through its own
// environment variable for inherited ones.
func (o *Origin) start(config string, listeners []*net.TCPListener) {
	o.t.Helper()
	cmd := exec.Command(Program(o.t, "nginx"), "-p", o.dir, "-c", config, "-e", o.errorLog())
	inherited := "NGINX="
	for i, l := range listeners {
		file, err := l.File()
		if err != nil {
			o.t.Fatalf("handing a socket to nginx: %v", err)
		}
		defer file.Close()
		defer l.Close()
		cmd.ExtraFiles = append(cmd.ExtraFiles, file)
		inherited += strconv.Itoa(3+i) + ";"
	}
	cmd.Env = append(os.Environ(), inherited)
	cmd.Stderr = o.stderr
	NotOrphaned(cmd)
	accessLog, err := cmd.StdoutPipe()
	if err != nil {
		o.t.Fatalf("opening nginx's log: %v", err)
	}
	if err := cmd.Start(); err != nil {
		o.t.Fatalf("starting nginx: %v", err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		o.log.read(accessLog)
	}()
	o.t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		<-read
		cmd.Wait()
	})
}

func (o *Origin) errorLog() string { return filepath.Join(o.dir, "error.log") }

// errors is what nginx complained about, for the message of a failed test.
func (o *Origin) errors() string {
	log, _ := os.ReadFile(o.errorLog()) // none when nginx did not come that far
	return "nginx said:\n" + o.stderr.text() + string(log)
}

// Resolve is what `[upstream] resolve` needs for every site: "site.test:443"
// and "site.test:80" to the address nginx listens on. The caller owns the map.
func (o *Origin) Resolve() map[string]string {
	all := map[string]string{}
	for name, addr := range o.ports {
		all[name] = addr
	}
	return all
}

// Addr is where nginx listens for one side of a site: name "site.test" and
// scheme "http" or "https".
func (o *Origin) Addr(name, scheme string) string {
	o.t.Helper()
	port := map[string]string{"http": "80", "https": "443"}[scheme]
	addr, ok := o.ports[net.JoinHostPort(name, port)]
	if !ok {
		o.t.Fatalf("the origin serves no %s://%s", scheme, name)
	}
	return addr
}

// Root is the folder of a site's files. A file that is put there is served immediately.
func (o *Origin) Root(name string) string { return filepath.Join(o.dir, name) }

// URL is the direct address of a path, without the proxy and without the
// site's name: http://127.0.0.1:PORT/path. The site answers to it as to its
// own name.
func (o *Origin) URL(name, path string) string {
	o.t.Helper()
	u := url.URL{Scheme: "http", Host: o.Addr(name, "http")}
	return u.String() + path
}

// Client fetches from the sites by their .test names directly: no proxy, no
// redirect followed, only the site CA trusted.
func (o *Origin) Client() *http.Client { return o.client }

func (o *Origin) direct() *http.Transport {
	dialer := &net.Dialer{Timeout: Patience}
	return &http.Transport{
		DialContext:       dialMapped(dialer, o.ports),
		TLSClientConfig:   &tls.Config{RootCAs: o.CA.Pool()},
		ForceAttemptHTTP2: true,
	}
}
