package testkit

import (
	"bytes"
	"fmt"
	"os"
	"sort"
	"text/template"
)

// logFormat is nginx's own access log, a line of JSON per request it answered.
// escape=json makes any octet of a hostile request safe to read back.
const logFormat = `escape=json '{"host":"$host","scheme":"$scheme","proto":"$server_protocol",` +
	`"method":"$request_method","target":"$request_uri","status":"$status",` +
	`"agent":"$http_user_agent","via":"$http_via"}'`

// nginxConf runs one worker as the test's own user, with nothing outside the
// test's folder. A master is needed: without one, nginx 1.22 crashes on sockets
// it inherits.
var nginxConf = template.Must(template.New("nginx.conf").Parse(`
daemon off;
worker_processes 1;
{{with .User}}user {{.}};{{end}}
pid {{.Dir}}/nginx.pid;
error_log {{.Dir}}/error.log;
events { worker_connections 2048; }
http {
	types { text/html html; text/plain txt; application/octet-stream bin; }
	default_type application/octet-stream;
	log_format hits {{.LogFormat}};
	access_log /dev/stdout hits;
	client_body_temp_path {{.Dir}}/tmp-body;
	proxy_temp_path {{.Dir}}/tmp-proxy;
	fastcgi_temp_path {{.Dir}}/tmp-fastcgi;
	uwsgi_temp_path {{.Dir}}/tmp-uwsgi;
	scgi_temp_path {{.Dir}}/tmp-scgi;
	server_tokens off;
	keepalive_timeout 60s;
	client_max_body_size 2g;
{{- range .Servers}}
	server {
		listen {{.HTTP}};
		listen {{.HTTPS}} ssl http2;
		server_name {{.Site.Name}};
		ssl_certificate {{.Cert}};
		ssl_certificate_key {{.Key}};
		root {{.Root}};
		absolute_redirect off;
{{- range .Redirects}}
		location = {{index . 0}} { return 302 {{index . 1}}; }
{{- end}}
		{{.Site.Config}}
	}
{{- end}}
}
`))

// server is what the template needs of one site.
type server struct {
	Site                   Site
	HTTP, HTTPS, Cert, Key string
	Root                   string
	Redirects              [][2]string
}

func (o *Origin) config() []byte {
	data := struct {
		Dir, User, LogFormat string
		Servers              []server
	}{Dir: o.dir, LogFormat: logFormat}
	if os.Geteuid() == 0 {
		data.User = "root" // else the worker could not read the test's folder
	}
	for _, site := range o.sites {
		data.Servers = append(data.Servers, o.server(site))
	}
	var text bytes.Buffer
	if err := nginxConf.Execute(&text, data); err != nil {
		o.t.Fatalf("writing nginx's configuration: %v", err)
	}
	return text.Bytes()
}

func (o *Origin) server(site Site) server {
	s := server{
		Site:  site,
		HTTP:  o.Addr(site.Name, "http"),
		HTTPS: o.Addr(site.Name, "https"),
		Root:  o.Root(site.Name),
	}
	if site.Expired {
		s.Cert, s.Key = o.CA.ExpiredLeaf(o.t, site.Name)
	} else {
		s.Cert, s.Key = o.CA.Leaf(o.t, site.Name)
	}
	for path, location := range site.Redirects {
		s.Redirects = append(s.Redirects, [2]string{fmt.Sprintf("%q", path), fmt.Sprintf("%q", location)})
	}
	sort.Slice(s.Redirects, func(i, j int) bool { return s.Redirects[i][0] < s.Redirects[j][0] })
	return s
}

// NginxAround returns the nginx.conf of an nginx in the foreground that keeps everything in dir,
// with lines in http.
func NginxAround(dir, lines string) string {
	text := "daemon off;\npid " + dir + "/pid;\nerror_log " + dir + "/log;\nevents {}\nhttp {\naccess_log off;\n"
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		text += kind + "_temp_path " + dir + "/" + kind + ";\n"
	}
	return text + lines + "}\n"
}
