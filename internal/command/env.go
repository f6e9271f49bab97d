package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"time"
)

// EnvCmd is `heed env`: the variables of `heed run`, for a shell.
type EnvCmd struct {
	Config string `short:"c" env:"HEED_CONFIG" placeholder:"FILE" help:"Read settings from FILE instead of ./proxy.toml."`
	Listen string `short:"l" env:"HEED_LISTEN" placeholder:"ADDR" help:"Where heed will listen, when it is not running yet."`
	Shell  string `enum:"sh,fish,powershell" default:"sh" help:"The language to print: sh (bash and zsh, too), fish or powershell."`
	Unset  bool   `help:"Print what takes the variables away again; what they held before does not come back."`
	Quiet  bool   `short:"q" help:"Make no remarks on stderr."`
}

// Help says how the output is used.
func (c *EnvCmd) Help() string {
	return `Prints variables that make programs use the running heed and trust its CA. Use
this, not HTTP_PROXY alone: curl does not read that name, and https would go
round. The address is that of the running heed, else the one it would listen on.

Examples:

    eval "$(heed env)"                                        # sh, bash, zsh
    heed env --shell fish | source
    heed env --shell powershell | Out-String | Invoke-Expression
    eval "$(heed env --unset)"`
}

// Run prints the variables.
func (c *EnvCmd) Run(a *App) error {
	language := shells[c.Shell]
	if c.Unset {
		for _, v := range clientVariables {
			fmt.Fprintln(a.Stdout, language.unset(v.name))
		}
		return nil
	}
	place, err := c.place(a)
	if err != nil {
		return err
	}
	for _, v := range clientValues(a.Environ, place.addr, place.files) {
		fmt.Fprintln(a.Stdout, language.set(v))
	}
	for _, r := range place.remarks {
		if !c.Quiet {
			fmt.Fprintln(a.Stderr, "heed:", r)
		}
	}
	return nil
}

// clientPlace is where a shell's programs find heed and the files they need,
// and what the person at the shell should know.
type clientPlace struct {
	addr    string
	files   ClientFiles
	remarks []string
}

func (c *EnvCmd) place(a *App) (*clientPlace, error) {
	cfg, err := Load(c.Config, a.Defaults)
	if err == nil {
		err = cfg.serveAt(c.Listen, nil)
	}
	if err != nil {
		return nil, err
	}
	if foreign, err := foreignState(); foreign != "" || err != nil {
		return &clientPlace{addr: cfg.Listen.first(), remarks: []string{fetchAdvice(cfg.Listen.first(), "the files in "+foreign+" cannot be read by this user")}}, err
	}
	stateDir, err := StateDir()
	if err != nil {
		return nil, err
	}
	p := &clientPlace{addr: nearby(cfg.Listen.first())}
	running, err := runningHeed(stateDir)
	switch {
	case err != nil:
		return nil, err
	case running == nil && strings.HasSuffix(cfg.Listen.first(), ":0"):
		return nil, errors.New("heed is not running, and would listen on any free port\nStart it with `heed serve` first")
	case running == nil && heedAt(cfg.Listen.first()):
		p.remarks = []string{fetchAdvice(cfg.Listen.first(), "the heed at "+cfg.Listen.first()+" has another state directory than "+stateDir)}
		return p, nil
	case running == nil:
		p.remarks = []string{"heed is not running; start it with `heed serve`"}
	default:
		p.addr = nearby(running.Listeners[0])
		if cfg, err = c.settingsOf(running, cfg, a.Defaults); err != nil {
			return nil, err
		}
	}
	authority, err := openCA(cfg, stateDir, a.Now)
	if err != nil {
		return nil, err
	}
	found := Inspect(a.Environ, stateDir, p.addr)
	p.remarks = append(p.remarks, found.Remarks()...)
	p.files, err = MakeClientFiles(stateDir, authority, found, a.Now())
	return p, err
}

// nearby is where programs of this machine reach a listener: one for all
// addresses of the machine is at none of them in particular.
func nearby(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if a, bad := netip.ParseAddr(host); err != nil || bad != nil || !a.IsUnspecified() {
		return listen
	}
	return net.JoinHostPort("127.0.0.1", port)
}

// runningHeed asks the heed of the state directory; nil when none serves
// there. One that `heed run` started serves runs alone.
func runningHeed(stateDir string) (*Status, error) {
	status, err := readStatus(context.Background(), stateDir)
	if errors.Is(err, errNotRunning) || err == nil && len(status.Listeners) == 0 {
		return nil, nil
	}
	return status, err
}

// settingsOf returns the settings of the running heed, whose CA the clients
// meet, unless the caller named a file.
func (c *EnvCmd) settingsOf(running *Status, ours *Config, defaults []byte) (*Config, error) {
	switch {
	case c.Config != "" || running.ConfigFile == ours.File:
		return ours, nil
	case running.ConfigFile == "":
		return builtInConfig(defaults)
	default:
		return Load(running.ConfigFile, defaults)
	}
}

// foreignState returns the state directory when another user's heed keeps it,
// so that nothing in it can be named to this user's programs; else "".
func foreignState() (string, error) {
	dir, err := statePath(os.Getenv, os.UserHomeDir, runtime.GOOS)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return dir, nil
	case err == nil && info.IsDir() && !ownedByUs(info):
		return dir, nil
	default:
		return "", nil // ours, or not there, or a fault that StateDir names
	}
}

// fetchAdvice tells how to get at the CA of a heed whose files cannot be named.
func fetchAdvice(addr, why string) string {
	return fmt.Sprintf(`%s, so no CA file is named
Get the CAs from the proxy, and tell each client where they are:
    curl --noproxy '*' -o heed-bundle.pem http://%s/bundle.pem
    export SSL_CERT_FILE="$PWD/heed-bundle.pem" CURL_CA_BUNDLE="$PWD/heed-bundle.pem" REQUESTS_CA_BUNDLE="$PWD/heed-bundle.pem"`, why, addr)
}

// heedAt reports whether a heed listens at addr. Nothing it says is believed:
// any user of this machine may listen there, and a CA from there is trusted
// only by a person's own act.
func heedAt(addr string) bool {
	client := http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + addr + "/ca.pem")
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	head, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	return err == nil && resp.StatusCode == http.StatusOK && bytes.Contains(head, []byte("BEGIN CERTIFICATE"))
}
