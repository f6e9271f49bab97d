package main

import (
	"context"
	"embed"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"heed/proxy/http1"
	"heed/proxy/icap"
)

// robotsPrograms make proxies of Debian judge by robots.txt, with python3-protego.
//
//go:embed robots_*.py
var robotsPrograms embed.FS

// writeRobotsPrograms writes the programs into dir.
func writeRobotsPrograms(dir string) error { return os.CopyFS(dir, robotsPrograms) }

// robotsSquidConf is a forward proxy that asks as many helpers as there are processors
// about each URL, and keeps what they answer for an hour; with the access log of Debian's
// settings.
const robotsSquidConf = `http_port %[1]s
hosts_file %[2]s/hosts
external_acl_type robots ttl=3600 negative_ttl=3600 children-max=%[3]d children-startup=%[3]d concurrency=100 %%URI %%>{User-Agent} /usr/bin/python3 %[2]s/robots_helper.py %[2]s/hosts
acl allowed external robots
http_access deny !allowed
http_access allow all
` + squidRest

// robotsSquid is the installed Squid with a helper that judges.
func robotsSquid(ctx context.Context, _ workload, at place) (*exec.Cmd, error) {
	hosts, err := os.ReadFile(at.origin.hosts)
	if err != nil {
		return nil, err
	}
	if err := writeRobotsPrograms(at.dir); err != nil {
		return nil, err
	}
	config := filepath.Join(at.dir, "squid.conf")
	for name, text := range map[string][]byte{
		filepath.Join(at.dir, "hosts"): hosts,
		config:                         fmt.Appendf(nil, robotsSquidConf, at.addr, at.dir, runtime.NumCPU()),
	} {
		if err := os.WriteFile(name, text, 0o644); err != nil {
			return nil, err
		}
	}
	return squidAs(ctx, program("squid"), config, at)
}

// robotsMitmproxy is mitmproxy with an addon that judges.
func robotsMitmproxy(ctx context.Context, _ workload, at place) (*exec.Cmd, error) {
	if err := writeRobotsPrograms(at.dir); err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(at.addr)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program("mitmdump"), "--quiet", "--listen-host", host, "--listen-port", port,
		"--set", "confdir="+at.dir, "--scripts", filepath.Join(at.dir, "robots_addon.py"),
		"--set", "robots_hosts="+at.origin.hosts, "--set", "robots_log="+filepath.Join(at.dir, "access.log"))
	cmd.Env = append(inheritedEnv(), "HOME="+at.dir)
	return cmd, nil
}

// askingSquidConf is a forward proxy that asks about each request over ICAP.
const askingSquidConf = `http_port %[1]s
hosts_file %[2]s/hosts
icap_enable on
icap_service judge reqmod_precache icap://%[3]s/reqmod bypass=off
adaptation_access judge allow all
adaptation_send_client_ip on
icap_service_failure_limit -1
http_access allow all
` + squidRest

// askingSquid is the installed Squid that asks a heed, or where binary is empty a server that lets
// everything pass: a child of it, so that its CPU time counts.
func askingSquid(binary string) func(context.Context, workload, place) (*exec.Cmd, error) {
	return func(ctx context.Context, w workload, at place) (*exec.Cmd, error) {
		asked, err := freeAddr(w)
		if err != nil {
			return nil, err
		}
		files := map[string][]byte{"squid.conf": fmt.Appendf(nil, askingSquidConf, at.addr, at.dir, asked)}
		if files["hosts"], err = os.ReadFile(at.origin.hosts); err != nil {
			return nil, err
		}
		judge, err := roleCommand(ctx, at.bench.self, "icap-204", at.origin.roots, proxySettings{Listen: asked})
		if binary != "" {
			at.addr = "127.0.0.1:0"
			w.settings += fmt.Sprintf("[[listener]]\naddress = %q\nmode = \"icap\"\ntrust = [\"127.0.0.1\"]\n", asked)
			judge, err = heed("heed", binary, "").command(ctx, w, at)
		}
		if err != nil {
			return nil, err
		}
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(at.dir, name), text, 0o644); err != nil {
				return nil, err
			}
		}
		cmd, err := squidAs(ctx, program("squid"), filepath.Join(at.dir, "squid.conf"), at)
		if err != nil {
			return nil, err
		}
		args := append([]string{"sh", "-c", `n=$1; shift; ("$@" & tail --pid=$$ -f /dev/null; kill $!) & until ss -ltn 2>/dev/null | grep -q "$n"; do sleep 0.05; done; shift $#; exec "$SQUID" -N -n "bench$PORT" -f "$CONF"`, "sh", asked}, judge.Args...)
		_, port, _ := net.SplitHostPort(asked)
		cmd.Path, cmd.Args, cmd.SysProcAttr = "/bin/sh", args, nil // Squid itself becomes the user proxy
		cmd.Env = append(judge.Env, "SQUID="+program("squid"), "PORT="+port, "CONF="+filepath.Join(at.dir, "squid.conf"))
		return cmd, nil
	}
}

// icap204 lets every request of ICAP pass that has no body.
func icap204() error {
	settings, err := readSettings()
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", settings.Listen)
	if err != nil {
		return err
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer c.Close()
			in := icap.Reader{HTTP: http1.Reader{From: c}}
			out := icap.Writer{HTTP: http1.Writer{To: c}, Service: icap.Service{Name: "204", Tag: "t", Connections: 1000, TTL: 3600}}
			var q icap.Request
			for in.Read(&q) == nil {
				if q.Method == "OPTIONS" {
					err = out.Options(&q)
				} else {
					err = out.Status(&q, 204, "")
				}
				if err != nil {
					return
				}
			}
		}()
	}
}
