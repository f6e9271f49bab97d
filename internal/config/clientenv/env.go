// Package clientenv makes clients use heed and trust its CA: the variables, the files
// that they name, what is found in an environment, and heed env.
package clientenv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"heed/internal/base/safetext"
	"heed/internal/base/state"
	"heed/internal/config"
	"heed/internal/config/route"
	"heed/internal/control"
	"heed/internal/output/console"
)

// EnvCmd is `heed env`: the variables of `heed run`, for a shell.
type EnvCmd struct {
	config.FileFlags
	Listen string `short:"l" env:"HEED_LISTEN" placeholder:"ADDR" help:"Use ADDR when heed is not running yet."`
	Shell  string `enum:"sh,fish,powershell" default:"sh" help:"Print for this shell: sh (also bash, zsh), fish or powershell."`
	Unset  bool   `help:"Print commands that remove the variables."`
	Quiet  bool   `short:"q" help:"Print no remarks on stderr."`
}

// Run prints the variables.
func (c *EnvCmd) Run(a *console.App) error {
	language := shells[c.Shell]
	if c.Unset {
		for _, v := range clientVariables {
			fmt.Fprintf(a.Stdout, language.unset, v.name)
		}
		return nil
	}
	e, err := c.endpoint(a)
	if err != nil {
		return err
	}
	for _, v := range clientValues(a.Environ, e.addr, e.files) {
		fmt.Fprintf(a.Stdout, language.set, v.Name, language.quote(v.Value))
	}
	if !c.Quiet {
		a.Remark(e.remarks...)
	}
	return nil
}

// endpoint is the address of heed and the files that a shell's programs need to use
// it, with remarks for the person at the shell.
type endpoint struct {
	addr    string
	files   ClientFiles
	remarks []string
}

func (c *EnvCmd) endpoint(a *console.App) (*endpoint, error) {
	cfg, err := c.Load(a)
	if err == nil {
		err = cfg.ServeAt(c.Listen, nil)
	}
	if err != nil {
		return nil, err
	}
	if foreign, err := state.Foreign(); foreign != "" || err != nil {
		return &endpoint{addr: cfg.Listen.First(), remarks: []string{fetchAdvice(cfg.Listen.First(), "the files in "+foreign+" cannot be read by this user")}}, err
	}
	if service := state.Service(); service != "" && heedAt(cfg.Listen.First()) {
		return &endpoint{addr: nearby(cfg.Listen.First()), remarks: []string{fetchAdvice(cfg.Listen.First(), "the heed at "+cfg.Listen.First()+" is that of another user")}}, nil
	}
	stateDir, err := state.Dir()
	if err != nil {
		return nil, err
	}
	p := &endpoint{addr: nearby(cfg.Listen.First())}
	running, err := control.Serving(context.Background(), stateDir)
	switch {
	case err != nil:
		return nil, err
	case running == nil && strings.HasSuffix(cfg.Listen.First(), ":0"):
		return nil, errors.New("heed is not running, and would listen on any free port\nStart it with `heed serve` first")
	case running == nil && heedAt(cfg.Listen.First()):
		p.remarks = []string{fetchAdvice(cfg.Listen.First(), "the heed at "+cfg.Listen.First()+" has another state directory than "+stateDir)}
		return p, nil
	case running == nil:
		p.remarks = []string{"heed is not running; start it with `heed serve`"}
	default:
		p.addr = nearby(running.Listeners[0])
		if cfg, err = c.LoadRunning(a, running.ConfigFile, cfg); err != nil {
			return nil, err
		}
	}
	authority, err := route.OpenCA(cfg.HTTPS.CACert, cfg.HTTPS.CAKey, stateDir, a.Now)
	if err != nil {
		return nil, err
	}
	if cfg.Access.Users != "" {
		p.remarks = append(p.remarks, "this heed asks for a user and a password; write them into the proxy variables: http://USER:PASSWORD@"+p.addr)
	}
	found := Inspect(a.Environ, stateDir, p.addr)
	p.remarks = append(p.remarks, found.Remarks()...)
	p.files, err = MakeClientFiles(stateDir, authority, found, a.Now())
	return p, err
}

// nearby returns the address at which programs of this machine reach a listener:
// listen, with an unspecified address replaced by loopback.
func nearby(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if a, bad := netip.ParseAddr(host); err != nil || bad != nil || !a.IsUnspecified() {
		return listen
	}
	return net.JoinHostPort("127.0.0.1", port)
}

// fetchAdvice describes how to fetch the CA of a heed whose files cannot be read.
func fetchAdvice(addr, why string) string {
	return fmt.Sprintf(`%s, so no CA file is named
Fetch the CAs from the proxy, and set their path for each client:
    curl --noproxy '*' -o heed-bundle.pem http://%s/bundle.pem
    export SSL_CERT_FILE="$PWD/heed-bundle.pem" CURL_CA_BUNDLE="$PWD/heed-bundle.pem" REQUESTS_CA_BUNDLE="$PWD/heed-bundle.pem"`, why, addr)
}

// heedAt reports whether a heed listens at addr. Its CA is not used: any user of
// this machine may listen there, so a person must decide to trust it.
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

// shell writes changes of the environment in one shell's language: each is a format of the
// name, and of the value where there is one.
type shell struct {
	set, unset string
	quote      func(value string) string
}

// shells are the languages of `heed env --shell`; sh is also bash, zsh, dash and their like.
var shells = map[string]shell{
	"sh":   {"export %s=%s\n", "unset %s\n", safetext.ShellQuote},
	"fish": {"set -gx %s '%s'\n", "set -e %s\n", strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace},
	"powershell": {"$env:%s = '%s'\n", "Remove-Item Env:%s -ErrorAction SilentlyContinue\n",
		strings.NewReplacer("'", "''").Replace},
}
