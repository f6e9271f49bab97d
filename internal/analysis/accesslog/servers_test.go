package accesslog_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"heed/internal/analysis/accesslog"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// logged are formats that the servers themselves write.
type logged struct {
	file    string
	pattern string // for --format; empty: the format is found
	host    bool   // the log has the host
}

var nginxLogs = []logged{
	{"combined.log", "", false},
	{"vhost.log", "", true},
	{"json.log", "", true},
	{"custom.log", `$msec|$host|$remote_addr|"$request"|$status|$body_bytes_sent|"$http_referer"|"$http_user_agent"`, true},
}

const nginxConf = `daemon off; master_process off; pid %[1]s/nginx.pid; error_log %[1]s/error.log;
events {}
http {
	client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/fastcgi; uwsgi_temp_path %[1]s/uwsgi; scgi_temp_path %[1]s/scgi;
	log_format vhost '$host:$server_port $remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent"';
	log_format json escape=json '{"time":"$time_iso8601","remote_addr":"$remote_addr","host":"$host","request":"$request","status":$status,"body_bytes_sent":$body_bytes_sent,"http_referer":"$http_referer","http_user_agent":"$http_user_agent"}';
	log_format custom '%[3]s';
	access_log %[1]s/combined.log combined;
	access_log %[1]s/vhost.log vhost;
	access_log %[1]s/json.log json;
	access_log %[1]s/custom.log custom;
	server { listen %[2]s; return 200 "0123456789"; }
}
`

var apacheLogs = []logged{
	{"combined.log", "", false},
	{"vhost.log", "", true},
	{"common.log", "", false},
	{"custom.log", `%{usec}t %v %a "%m" "%U%q" %>s %B "%{Referer}i" "%{User-Agent}i"`, true},
}

const apacheConf = `ServerRoot %[1]q
ServerName example.org
PidFile %[1]s/httpd.pid
ErrorLog %[1]s/error.log
Listen %[2]s
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
ErrorDocument 404 0123456789
LogFormat "%%h %%l %%u %%t \"%%r\" %%>s %%b \"%%{Referer}i\" \"%%{User-Agent}i\"" combined
LogFormat "%%v:%%p %%h %%l %%u %%t \"%%r\" %%>s %%B \"%%{Referer}i\" \"%%{User-Agent}i\"" vhost
LogFormat "%%h %%l %%u %%t \"%%r\" %%>s %%b" common
LogFormat "%[3]s" custom
CustomLog %[1]s/combined.log combined
CustomLog %[1]s/vhost.log vhost
CustomLog %[1]s/common.log common
CustomLog %[1]s/custom.log custom
`

// serve runs a server until the test ends, and waits until it answers.
func serve(t *testing.T, cmd *exec.Cmd, addr string) {
	t.Helper()
	var said bytes.Buffer
	cmd.Stderr, cmd.Stdout = &said, &said
	testkit.NotOrphaned(cmd)
	must.OK(t, cmd.Start())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-ended
		if t.Failed() {
			t.Log(said.String())
		}
	})
	testkit.Until(t, "the server accepts connections", func() bool {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
}

// agents are User-Agents that a log has to escape, in the octets of the request.
var agents = []string{"PoliteBot/1.0 (+https://example.org/bot)", `say "hi" \ back\x41slash`, "tab\there", "中文 \xff\xfe bytes", "<script>alert(1)</script>", "100%zz [01/Mar/2025:10:00:00 +0000] x"}

// visit sends the requests, each on a connection of its own, and returns how many.
func visit(t *testing.T, addr string) int {
	t.Helper()
	heads := []string{"GET http://example.org/absolute?q=1 HTTP/1.1\r\nHost: example.org\r\n", "nonsense\r\n"}
	for i, agent := range agents {
		heads = append(heads, fmt.Sprintf("GET /%d?x=%%41&y=\"q\" HTTP/1.1\r\nHost: example.org\r\nReferer: https://example.net/\"%d\"\r\nUser-Agent: %s\r\n", i, i, agent))
	}
	for _, head := range heads {
		c := must.Get(net.Dial("tcp", addr))(t)
		must.Get(io.WriteString(c, head+"Connection: close\r\n\r\n"))(t)
		_, _ = io.Copy(io.Discard, c) // a server may reset what it refuses
		_ = c.Close()
	}
	return len(heads)
}

func TestReader_LogsThatNginxAndApacheWrite(t *testing.T) {
	for name, s := range map[string]struct {
		conf  string
		logs  []logged
		start func(dir, conf string) *exec.Cmd
	}{
		"nginx": {nginxConf, nginxLogs, func(dir, conf string) *exec.Cmd {
			return exec.Command(testkit.Program(t, "nginx"), "-p", dir, "-c", conf, "-e", filepath.Join(dir, "error.log"))
		}},
		"apache2": {apacheConf, apacheLogs, func(_, conf string) *exec.Cmd {
			return exec.Command(testkit.Program(t, "apache2"), "-f", conf, "-D", "FOREGROUND")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			dir, addr := t.TempDir(), testkit.FreeAddr(t)
			custom := s.logs[len(s.logs)-1].pattern
			if name == "apache2" {
				custom = strings.ReplaceAll(custom, `"`, `\"`)
			}
			conf := fmt.Sprintf(s.conf, dir, addr, custom)
			if name == "apache2" && os.Geteuid() == 0 {
				conf += "User nobody\nGroup nogroup\n"
			}
			serve(t, s.start(dir, testkit.Write(t, filepath.Join(dir, "server.conf"), conf)), addr)
			n := visit(t, addr)
			for _, l := range s.logs {
				path := filepath.Join(dir, l.file)
				testkit.Until(t, path+" is written", func() bool {
					data, err := os.ReadFile(path)
					return err == nil && bytes.Count(data, []byte("\n")) >= n
				})
				compare(t, path, l)
			}
		})
	}
}

// compare checks that a log has what was sent.
func compare(t *testing.T, path string, l logged) {
	t.Helper()
	got, counts := all(t, accesslog.Options{Files: []string{path}, Format: l.pattern})
	must.Equal(t, counts.Unparsed, 0, "%s: not read: %+v\n%s", path, counts.Problems, testkit.Read(t, path))
	found := map[string]accesslog.Request{}
	for _, q := range got {
		found[q.Target] = q
		if l.host && !strings.HasPrefix(q.Host, "example.org") && strings.HasPrefix(q.Target, "/") {
			t.Errorf("%s: the host is %q", path, q.Host)
		}
	}
	for i, agent := range agents {
		target := fmt.Sprintf("/%d?x=%%41&y=\"q\"", i)
		q, ok := found[target]
		if !ok {
			t.Errorf("%s: no request for %s in\n%s", path, target, texts(got))
			continue
		}
		if filepath.Base(path) == "common.log" {
			agent = ""
		} else if filepath.Base(path) == "json.log" {
			agent = strings.ToValidUTF8(agent, "\ufffd")
			q.UserAgent = strings.ToValidUTF8(q.UserAgent, "\ufffd")
		}
		if q.Client != "127.0.0.1" || q.Method != "GET" || q.Status == 0 || strings.ReplaceAll(q.UserAgent, "\ufffd\ufffd", "\ufffd") != agent {
			t.Errorf("%s: %s, want the agent %q", path, text(q), agent)
		}
		must.True(t, agent == "" || q.Referrer == fmt.Sprintf("https://example.net/\"%d\"", i),
			"%s: the referrer is %q", path, q.Referrer)
	}
}
