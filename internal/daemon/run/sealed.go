package run

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"heed/internal/config/clientenv"
	"heed/internal/control"
	"heed/internal/output/console"
	"heed/internal/sealed"
	"heed/internal/trust/ca"
)

// sealedReport is the part of the summary about a sealed run.
type sealedReport struct {
	Blocked []sealed.Blocked `json:"blocked"` // most first
}

// checkSealed checks the flags of a sealed run.
func (c *RunCmd) checkSealed() error {
	switch {
	case !c.Sealed && c.NoEnv:
		return errors.New("--no-env needs --sealed: without the variables, an unsealed run does not use heed")
	case !c.Sealed && len(c.AllowHostPort) > 0:
		return errors.New("--allow-host-port needs --sealed: an unsealed run reaches all ports of this machine")
	case !c.Sealed && len(c.AllowSocket) > 0:
		return errors.New("--allow-socket needs --sealed: an unsealed run reaches all sockets of this machine")
	}
	for i, port := range c.AllowHostPort {
		if port == 0 || port == 53 || slices.Contains(c.AllowHostPort[:i], port) {
			return fmt.Errorf("--allow-host-port: %d is named twice, or no port of a service (1 to 65535, without 53)", port)
		}
	}
	for i, path := range c.AllowSocket {
		abs, err := filepath.Abs(path)
		if err != nil {
			return fmt.Errorf("--allow-socket: %w", err)
		}
		if info, err := os.Stat(abs); err != nil || info.Mode().Type() != os.ModeSocket {
			return fmt.Errorf("--allow-socket: %s is no Unix socket\nName the socket of a running service", console.Quoted(path))
		}
		c.AllowSocket[i] = abs
	}
	return nil
}

// seal starts the helper of a sealed run, whose sockets become part of the join request.
func (r *run) seal() error {
	o := sealed.Options{Hide: r.state, HostPorts: r.cmd.AllowHostPort, Sockets: r.cmd.AllowSocket}
	o.Stdin, _ = r.app.Stdin.(*os.File)
	o.Stdout, _ = r.app.Stdout.(*os.File)
	o.Stderr, _ = r.app.Stderr.(*os.File)
	for _, path := range o.Sockets {
		if h, err := control.SocketPath(r.state); err == nil && h == path {
			return fmt.Errorf("--allow-socket: %s is heed's control socket, over which the run could leave its rules", path)
		}
	}
	var err error
	if r.seals, err = sealed.Launch(o); err != nil {
		return fmt.Errorf("--sealed: %w", err)
	}
	r.join.Sockets, r.join.Route.Sealed = r.seals.Files, true
	return nil
}

// checkHostPorts refuses the ports of heed itself.
func (r *run) checkHostPorts() error {
	for _, port := range r.cmd.AllowHostPort {
		suffix := fmt.Sprintf(":%d", port)
		if slices.ContainsFunc(r.own, func(at string) bool { return strings.HasSuffix(at, suffix) }) {
			return fmt.Errorf("--allow-host-port: heed itself listens on port %d\nName the port of a service", port)
		}
	}
	return nil
}

// ownLoopback are the hosts that a sealed run reaches without heed: its own.
const ownLoopback = "localhost,127.0.0.1,::1"

// sealedEnviron returns the environment of a sealed run, whose loopback addresses are its own:
// environ, which has heed's variables, or with --no-env that of heed without any that names
// a proxy.
func (r *run) sealedEnviron(environ []string) []string {
	if r.cmd.NoEnv {
		proxies := clientenv.NamesOf(clientenv.ProxyURL)
		return slices.DeleteFunc(slices.Clone(r.app.Environ), func(entry string) bool {
			name, _, _ := strings.Cut(entry, "=")
			return slices.Contains(proxies, name)
		})
	}
	for _, name := range clientenv.NamesOf(clientenv.NoHost) {
		environ = clientenv.SetVariable(environ, name, ownLoopback)
	}
	if options, found := console.Lookup(environ, "JAVA_TOOL_OPTIONS"); found {
		const empty = "-Dhttp.nonProxyHosts="
		environ = clientenv.SetVariable(environ, "JAVA_TOOL_OPTIONS", strings.Replace(options, empty, empty+"localhost|127.*|[::1]", 1))
	}
	return environ
}

// sealedChild is child for a sealed run.
func (r *run) sealedChild(environ []string) (status int, err error) {
	signals := notifySignals()
	defer signal.Stop(signals)
	bundle, _ := console.Lookup(environ, "SSL_CERT_FILE")
	command := sealed.Command{Path: r.path, Args: r.args, Env: r.sealedEnviron(environ), Keep: []string{filepath.Dir(bundle)},
		Roots: bundle, RootFiles: ca.SystemFiles()}
	if err := r.seals.Exec(command); err != nil {
		if exec, ok := errors.AsType[*sealed.ExecError](err); ok {
			return 0, cannotRun(r.app, r.args[0], exec.Err)
		}
		return 0, fmt.Errorf("--sealed: %w", err)
	}
	var end syscall.WaitStatus
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		end, err = r.seals.Wait()
	}()
	passSignals(signals, r.seals.Process, ended)
	r.sealed = &sealedReport{Blocked: r.seals.Blocked()}
	switch {
	case err != nil:
		return 0, err
	case end.Signaled():
		return console.SignalStatus(end.Signal()), nil
	}
	return end.ExitStatus(), nil
}

// words returns what was blocked, for a person.
func (s *sealedReport) words() string {
	if len(s.Blocked) == 0 {
		return "heed: sealed: no network exit but heed; nothing was blocked"
	}
	var all []string
	for i, b := range s.Blocked {
		if i == maxSummaryLines {
			all = append(all, fmt.Sprintf("%d more", len(s.Blocked)-i))
			break
		}
		all = append(all, fmt.Sprintf("%s %d", console.Printable(b.What), b.Count))
	}
	return "heed: sealed: no network exit but heed; blocked: " + strings.Join(all, ", ")
}
