package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"text/template"
	"time"

	"heed/internal/trust/ca"
)

// siteName is the host of all cases with one site.
const siteName = "site.test"

// siteAddresses is how many loopback addresses the hosts are spread over, since one
// address has too few ports for the connections of all contenders.
const siteAddresses = 8

// origin is a running nginx. Every host has one of its addresses, and the same port.
type origin struct {
	plain, secure string // the ports of http and https
	roots         string // PEM file of the CA behind its certificate
	hosts         string // file in the form of /etc/hosts with all its hosts
	names         map[string]string
	server        *process
}

// nginxConf serves files as Debian's nginx does. no-store makes every request reach
// the site, whatever the proxy would keep. /connection is the number of the
// connection, counted over all that nginx accepted.
var nginxConf = template.Must(template.New("nginx.conf").Parse(`
daemon off;
worker_processes auto;
{{with .User}}user {{.}};{{end}}
pid {{.Dir}}/nginx.pid;
error_log {{.Dir}}/error.log;
events { worker_connections 16384; }
http {
	access_log off;
	sendfile on;
	tcp_nopush on;
	server_tokens off;
	types { text/html html; text/plain txt; }
	client_body_temp_path {{.Dir}}/tmp-body;
	proxy_temp_path {{.Dir}}/tmp-proxy;
	fastcgi_temp_path {{.Dir}}/tmp-fastcgi;
	uwsgi_temp_path {{.Dir}}/tmp-uwsgi;
	scgi_temp_path {{.Dir}}/tmp-scgi;
	server {
{{- range .Plain}}
		listen {{.}};
{{- end}}
		listen {{.Secure}} ssl;
		ssl_certificate {{.Dir}}/site.pem;
		ssl_certificate_key {{.Dir}}/site-key.pem;
		root {{.Dir}}/www;
		add_header Cache-Control no-store;
		location = /robots.txt { try_files /robots/$host.txt /robots.txt =404; }
		location /page/ { try_files /1k =404; }
		location = /connection { return 200 $connection; }
	}
}
`))

// startOrigin starts nginx with its files in dir.
func startOrigin(ctx context.Context, dir string, s scale) (*origin, error) {
	o := &origin{hosts: filepath.Join(dir, "hosts"), names: map[string]string{siteName: "127.0.0.1"}}
	for i := range s.Hosts {
		o.names[hostName(i)] = "127.0.0." + strconv.Itoa(1+i%siteAddresses)
	}
	for _, n := range upTo(s.Most, ruleCounts) {
		o.names[ruleHost(n)] = "127.0.0.1"
	}
	if err := o.writeFiles(dir, s); err != nil {
		return nil, err
	}
	listeners, err := o.listen()
	if err != nil {
		return nil, err
	}
	data := struct {
		Dir, User, Secure string
		Plain             []string
	}{Dir: dir}
	if os.Geteuid() == 0 {
		data.User = "root" // else its workers could not read dir
	}
	cmd := exec.CommandContext(ctx, program("nginx"), "-p", dir, "-c", filepath.Join(dir, "nginx.conf"), "-e", filepath.Join(dir, "error.log"))
	inherited := "NGINX="
	for i, l := range listeners {
		file, err := l.File()
		if err != nil {
			return nil, err
		}
		defer file.Close()
		defer l.Close()
		cmd.ExtraFiles = append(cmd.ExtraFiles, file)
		inherited += strconv.Itoa(3+i) + ";"
		data.Plain = append(data.Plain, l.Addr().String())
	}
	data.Secure, data.Plain = data.Plain[siteAddresses], data.Plain[:siteAddresses]
	cmd.Env = append(os.Environ(), inherited)
	var conf bytes.Buffer
	if err := nginxConf.Execute(&conf, data); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "nginx.conf"), conf.Bytes(), 0o600); err != nil {
		return nil, err
	}
	if o.server, err = start(cmd, filepath.Join(dir, "nginx.out")); err != nil {
		return nil, err
	}
	// Handing a socket to a child makes it blocking, for both. A worker of nginx would
	// wait in accept for a connection that another one took.
	for _, file := range cmd.ExtraFiles {
		if err := syscall.SetNonblock(int(file.Fd()), true); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// listen opens the ports, which nginx inherits, so that no other process takes one
// in between: one port on all addresses for http, and one for https.
func (o *origin) listen() ([]*net.TCPListener, error) {
	const tries = 20
	var failed error
	for range tries {
		var all []*net.TCPListener
		port := "0"
		for i := range siteAddresses {
			var l net.Listener
			if l, failed = net.Listen("tcp", net.JoinHostPort("127.0.0."+strconv.Itoa(1+i), port)); failed != nil {
				break
			}
			all = append(all, l.(*net.TCPListener))
			port = strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
		}
		if failed == nil {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return nil, err
			}
			o.plain, o.secure = port, strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
			return append(all, l.(*net.TCPListener)), nil
		}
		for _, l := range all {
			l.Close()
		}
	}
	return nil, failed
}

// writeFiles writes the pages, the robots.txt, the certificate and the hosts.
func (o *origin) writeFiles(dir string, s scale) error {
	authority, err := ca.Open(filepath.Join(dir, "site-ca"), time.Now)
	if err != nil {
		return err
	}
	o.roots = authority.CertPath()
	leaf, err := authority.Leaf(siteName)
	if err != nil {
		return err
	}
	key, err := x509.MarshalPKCS8PrivateKey(leaf.PrivateKey)
	if err != nil {
		return err
	}
	var chain, hosts bytes.Buffer
	for _, der := range leaf.Certificate {
		if err := pem.Encode(&chain, &pem.Block{Type: "CERTIFICATE", Bytes: der}); err != nil {
			return err
		}
	}
	for name, addr := range o.names {
		fmt.Fprintln(&hosts, addr, name)
	}
	files := map[string][]byte{
		"site.pem":       chain.Bytes(),
		"site-key.pem":   pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
		"hosts":          hosts.Bytes(),
		"www/robots.txt": []byte("User-agent: *\nDisallow: /private/\n"),
		"www/1k":         body(1 << 10),
		"www/100k":       body(100 << 10),
		"www/10m":        body(s.Large),
	}
	for _, n := range upTo(s.Most, ruleCounts) {
		files["www/robots/"+ruleHost(n)+".txt"] = manyRules(n)
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// hostName is the i-th of many hosts.
func hostName(i int) string { return fmt.Sprintf("h%d.test", i) }

// target returns the URL of the case, with %d for the number of the target if it has
// more than one.
func (o *origin) target(w workload) string {
	scheme, host, port := "http", cmp.Or(w.host, siteName), o.plain
	if w.secure {
		scheme, port = "https", o.secure
	}
	if w.hosts {
		host = "h%d.test"
	}
	return scheme + "://" + net.JoinHostPort(host, port) + w.path
}

// connections returns how many connections nginx has accepted so far, with the one
// on which it was asked.
func (o *origin) connections() (int, error) {
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://127.0.0.1:" + o.plain + "/connection")
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}
