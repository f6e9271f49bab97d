package main

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// contender is a proxy that is measured.
type contender struct {
	name string
	// lacks are the cases that it cannot take part in.
	lacks []string
	// command writes its settings into dir and returns how it is started.
	command func(ctx context.Context, w workload, at place) (*exec.Cmd, error)
	// shipsCA makes clients trust goproxy's own CA instead of that of the benchmark.
	shipsCA bool
}

// place is where a contender runs.
type place struct {
	dir    string // of this start
	state  string // of this contender; kept from start to start
	addr   string // where it is to listen
	bench  *bench
	origin *origin
}

// heedSettings make heed use the site. Everything else is as it is shipped.
const heedSettings = `listen = %q
[https]
ca_cert = %q
ca_key = %q
[upstream]
ca_file = %q
[upstream.resolve]
`

// bareSettings leave out the evidence: requests are judged and paced, and recorded nowhere.
const bareSettings = `[audit]
enabled = false
[log]
level = "error"
`

// purposeSettings state a purpose for the clients.
const purposeSettings = `[[client]]
name = "all"
from = ["127.0.0.0/8"]
purpose = "training"
`

// contenders returns all contenders. binary and against are builds of heed; against
// may be empty.
func contenders(binary, against, squid string) []contender {
	onlyPlain := []string{"tls-h1", "tls-h2", "tls-new", "tls-resumed", "tls-new-net", "refused", "refused-pages", "idle"}
	all := []contender{heed("heed", binary, "")}
	if against != "" {
		all = append(all, heed("against", against, ""))
	}
	robots := slices.Concat(onlyPlain, []string{"plain-1k", "plain-100k", "plain-10m", "hosts", "half", "cold"})
	robots = slices.DeleteFunc(robots, func(name string) bool { return name == "refused-pages" })
	purpose := heed("heed-purpose", binary, purposeSettings)
	purpose.lacks = slices.Concat(onlyPlain, []string{"plain-10m", "hosts", "half", "cold"})
	return append(all, heed("heed-bare", binary, bareSettings), purpose,
		contender{name: "squid", command: squidCommand(squid), lacks: []string{"tls-h2", "refused", "refused-pages"}},
		// As shipped it signs with RSA for each connection: many take a minute to open.
		contender{name: "goproxy", command: goCommand("goproxy"), lacks: []string{"tls-h2", "refused", "refused-pages", "idle"}, shipsCA: true},
		contender{name: "goproxy-tuned", command: goCommand("goproxy-tuned", "GOGC=400"), lacks: []string{"tls-h2", "refused", "refused-pages"}},
		contender{name: "reverseproxy", command: goCommand("reverseproxy", "GOGC=400"), lacks: onlyPlain},
		contender{name: "relay", command: goCommand("relay", "GOGC=400"), lacks: slices.Concat(onlyPlain, []string{"hosts", "cold"})},
		contender{name: "squid-robots", command: robotsSquid, lacks: robots},
		contender{name: "squid-heed", command: askingSquid(binary), lacks: robots},
		contender{name: "squid-204", command: askingSquid(""), lacks: append(slices.Clone(robots), "refused-pages")},
		contender{name: "mitmproxy-robots", command: robotsMitmproxy, lacks: robots},
	)
}

// missing returns what the contender needs and this machine lacks; empty: nothing.
func (c contender) missing(squid string) string {
	switch {
	case c.name == "squid" && !exists(certgenOf(squid)):
		return "Squid with OpenSSL"
	case strings.HasPrefix(c.name, "squid-") && !exists(program("squid")):
		return "squid"
	case c.name == "mitmproxy-robots" && !exists(program("mitmdump")):
		return "mitmproxy"
	case strings.HasSuffix(c.name, "-robots") && exec.Command("/usr/bin/python3", "-c", "import protego").Run() != nil:
		return "python3-protego"
	}
	return ""
}

func (c contender) can(w workload) bool { return !slices.Contains(c.lacks, w.name) }

// heed is a build of heed with further settings.
func heed(name, binary, settings string) contender {
	return contender{name: name, command: func(ctx context.Context, w workload, at place) (*exec.Cmd, error) {
		var text strings.Builder
		fmt.Fprintf(&text, heedSettings, at.addr, at.bench.caCert, at.bench.caKey, at.origin.roots)
		for host, addr := range at.origin.names {
			if host == cmp.Or(w.host, siteName) || w.hosts {
				fmt.Fprintf(&text, "%q = %q\n", net.JoinHostPort(host, at.origin.plain), net.JoinHostPort(addr, at.origin.plain))
			}
		}
		fmt.Fprintf(&text, "%q = %q\n", net.JoinHostPort(siteName, at.origin.secure), net.JoinHostPort("127.0.0.1", at.origin.secure))
		config := filepath.Join(at.dir, "proxy.toml")
		if err := os.WriteFile(config, []byte(text.String()+settings+w.settings), 0o600); err != nil {
			return nil, err
		}
		cmd := exec.CommandContext(ctx, binary, "serve", "--config", config)
		cmd.Env = append(inheritedEnv(), "HOME="+at.state, "HEED_STATE="+at.state)
		return cmd, nil
	}}
}

// heedConnections is how many connections to one site heed keeps, in [limits]
// site_connections.
const heedConnections = 512

// goCommand is a proxy of this program. GOGC of the environment has precedence over
// env: heed sets 400 itself while its heap is small.
func goCommand(role string, env ...string) func(context.Context, workload, place) (*exec.Cmd, error) {
	return func(ctx context.Context, _ workload, at place) (*exec.Cmd, error) {
		cmd, err := roleCommand(ctx, at.bench.self, role, at.origin.roots, proxySettings{
			Listen: at.addr, CACert: at.bench.caCert, CAKey: at.bench.caKey,
			Hosts: at.origin.hosts, Site: net.JoinHostPort("127.0.0.1", at.origin.plain), ConnectionLimit: heedConnections,
		})
		if err == nil {
			cmd.Env = slices.Concat(env, cmd.Env)
		}
		return cmd, err
	}
}

// squidRest is what all of them end with: the files of Squid, in its folder.
const squidRest = `access_log daemon:%[2]s/access.log squid
cache_log %[2]s/cache.log
coredump_dir %[2]s
pid_filename none
visible_hostname squid.test
shutdown_lifetime 0 seconds
`

// squidConf is a forward proxy that intercepts as Squid's documentation advises, with
// the access log of Debian's settings.
const squidConf = `http_port %[1]s ssl-bump tls-cert=%[2]s/ca.pem tls-key=%[2]s/ca-key.pem generate-host-certificates=on
sslcrtd_program %[3]s -s %[2]s/certs -M 4MB
acl step1 at_step SslBump1
ssl_bump peek step1
ssl_bump bump all
tls_outgoing_options cafile=%[2]s/site-ca.pem
http_access allow all
hosts_file %[2]s/hosts
` + squidRest

// squidCommand is Squid with ssl-bump.
func squidCommand(binary string) func(context.Context, workload, place) (*exec.Cmd, error) {
	return func(ctx context.Context, _ workload, at place) (*exec.Cmd, error) {
		certgen := certgenOf(binary)
		for name, source := range map[string]string{
			"ca.pem": at.bench.caCert, "ca-key.pem": at.bench.caKey, "site-ca.pem": at.origin.roots, "hosts": at.origin.hosts,
		} {
			text, err := os.ReadFile(source)
			if err != nil {
				return nil, err
			}
			if err := os.WriteFile(filepath.Join(at.dir, name), text, 0o600); err != nil {
				return nil, err
			}
		}
		certs := filepath.Join(at.dir, "certs")
		if out, err := exec.CommandContext(ctx, certgen, "-c", "-s", certs, "-M", "4MB").CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%s: %w\n%s", certgen, err, out)
		}
		config := filepath.Join(at.dir, "squid.conf")
		if err := os.WriteFile(config, fmt.Appendf(nil, squidConf, at.addr, at.dir, certgen), 0o644); err != nil {
			return nil, err
		}
		return squidAs(ctx, binary, config, at)
	}
}

// squidAs is Squid with a configuration, under the user proxy when this program is root.
func squidAs(ctx context.Context, binary, config string, at place) (*exec.Cmd, error) {
	_, port, _ := net.SplitHostPort(at.addr)
	cmd := exec.CommandContext(ctx, binary, "-N", "-n", "bench"+port, "-f", config)
	cmd.Env = inheritedEnv()
	if os.Geteuid() == 0 {
		return cmd, asProxyUser(cmd, at.dir)
	}
	return cmd, nil
}

// asProxyUser gives dir and all in it to the user proxy, which runs the command.
func asProxyUser(cmd *exec.Cmd, dir string) error {
	account, err := user.Lookup("proxy") // every Debian has it
	if err != nil {
		return err
	}
	uid, _ := strconv.Atoi(account.Uid)
	gid, _ := strconv.Atoi(account.Gid)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	return filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chown(path, uid, gid)
	})
}

// certgenOf returns the helper of a Squid that makes certificates.
func certgenOf(squid string) string {
	return filepath.Join(filepath.Dir(filepath.Dir(squid)), "lib/squid/security_file_certgen")
}
