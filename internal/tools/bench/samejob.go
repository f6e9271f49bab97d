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
access_log daemon:%[2]s/access.log squid
cache_log %[2]s/cache.log
coredump_dir %[2]s
pid_filename none
visible_hostname squid.test
shutdown_lifetime 0 seconds
`

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
