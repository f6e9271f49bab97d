package command

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"heed/internal/base/state"
	"heed/internal/config"
	"heed/internal/config/route"
	"heed/internal/control"
	"heed/internal/output/console"
	"heed/internal/trust/ca"
)

// CACmd is `heed ca`: heed's certificate authority.
type CACmd struct {
	Path      CAPathCmd      `cmd:"" default:"withargs" help:"Print the path of the CA certificate (also plain heed ca)."`
	Print     CAPrintCmd     `cmd:"" help:"Print the CA certificate."`
	Bundle    CABundleCmd    `cmd:"" help:"Print the system's root certificates and the CA's."`
	Install   CAInstallCmd   `cmd:"" help:"Add the CA to this machine's trust stores."`
	Uninstall CAUninstallCmd `cmd:"" help:"Remove the CA from this machine's trust stores."`
	Renew     CARenewCmd     `cmd:"" help:"Create a new CA beside the old one."`
}

// openAuthority returns the authority of the running heed or, where flags or the environment
// select settings or none runs, of one that is started with these settings.
func openAuthority(a *console.App, flags *config.FileFlags) (*ca.Authority, error) {
	stateDir, noState := state.Find(a.Stderr)
	if !flags.Chosen(a) && noState == nil {
		if running, _ := control.Serving(context.Background(), stateDir); running != nil {
			return ca.Published(running.CA.Path, stateDir, a.Now)
		}
	}
	cfg, err := flags.Load(a)
	if err == nil && cfg.HTTPS.CACert == "" {
		err = noState
	}
	if err != nil {
		return nil, err
	}
	return route.OpenCA(cfg.HTTPS.CACert, cfg.HTTPS.CAKey, stateDir, a.Now)
}

// printCA prints what text returns for the authority.
func printCA(a *console.App, flags *config.FileFlags, text func(*ca.Authority) ([]byte, error)) error {
	authority, err := openAuthority(a, flags)
	if err != nil {
		return err
	}
	out, err := text(authority)
	if err != nil {
		return err
	}
	_, err = a.Stdout.Write(out)
	return err
}

// CAPathCmd is `heed ca path`.
type CAPathCmd struct {
	config.FileFlags
}

// Run prints the path.
func (c *CAPathCmd) Run(a *console.App) error {
	return printCA(a, &c.FileFlags, func(authority *ca.Authority) ([]byte, error) {
		return []byte(authority.CertPath() + "\n"), nil
	})
}

// CAPrintCmd is `heed ca print`.
type CAPrintCmd struct {
	config.FileFlags
}

// Run prints the certificate.
func (c *CAPrintCmd) Run(a *console.App) error {
	return printCA(a, &c.FileFlags, func(authority *ca.Authority) ([]byte, error) { return authority.CertPEM(), nil })
}

// CABundleCmd is `heed ca bundle`.
type CABundleCmd struct {
	config.FileFlags
}

// Run prints the bundle.
func (c *CABundleCmd) Run(a *console.App) error {
	return printCA(a, &c.FileFlags, func(authority *ca.Authority) ([]byte, error) { return ca.Bundle(authority, nil) })
}

// CARenewCmd is `heed ca renew`.
type CARenewCmd struct {
	config.FileFlags
	Now bool `help:"Sign with the new CA from the next start on."`
}

// Run creates the new CA, or with --now makes it the one that signs.
func (c *CARenewCmd) Run(a *console.App) error {
	cfg, err := c.Load(a)
	if err != nil {
		return err
	}
	if cfg.HTTPS.CACert != "" {
		return errors.New("the CA that https.ca_cert names is not heed's to renew\nPut a new certificate and key in the place of " + cfg.HTTPS.CACert + " and " + cfg.HTTPS.CAKey)
	}
	stateDir, err := state.Find(a.Stderr)
	if err != nil {
		return err
	}
	r, err := ca.Renew(stateDir, a.Now(), c.Now)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.Stdout, "new CA: %s, valid until %s\n%s\n", r.NewFile, r.New.NotAfter.UTC().Format(time.DateOnly), ca.Fingerprint(r.New))
	if r.Switched {
		fmt.Fprintln(a.Stdout, "It signs in every heed started from now on. Start a running heed anew.")
	} else {
		fmt.Fprintln(a.Stdout, "The old one signs until `heed ca renew --now`. Bring the new one to the clients first (heed ca install, print, bundle).")
	}
	return nil
}

// storeFlags are the flags of install and uninstall.
type storeFlags struct {
	config.FileFlags
	DryRun bool `help:"Change nothing; print what would be done."`
	JSON   bool `name:"json" help:"Print one JSON object per store and certificate."`
}

// CAInstallCmd is `heed ca install`.
type CAInstallCmd struct{ storeFlags }

// Run installs the CA.
func (c *CAInstallCmd) Run(a *console.App) error { return c.change(a, ca.Install) }

// CAUninstallCmd is `heed ca uninstall`.
type CAUninstallCmd struct{ storeFlags }

// Run uninstalls the CA.
func (c *CAUninstallCmd) Run(a *console.App) error { return c.change(a, ca.Uninstall) }

func (c *storeFlags) change(a *console.App, how func([]ca.Store, []ca.Root, bool) []ca.Result) error {
	authority, err := openAuthority(a, &c.FileFlags)
	if err != nil {
		return err
	}
	count := map[ca.State]int{}
	results := how(ca.ThisMachine().Stores(), authority.Roots(), c.DryRun)
	for _, r := range results {
		count[r.State]++
		if err := c.print(a, r); err != nil {
			return err
		}
	}
	if len(results) == 0 {
		return fmt.Errorf("no trust store was found on this machine\nGive your programs the certificate by hand: %s", authority.CertPath())
	}
	if count[ca.Failed] > 0 || count[ca.Skipped] == len(results) {
		return console.Exit(console.ExitNo)
	}
	return nil
}

// print writes the result for one certificate in one store.
func (c *storeFlags) print(a *console.App, r ca.Result) error {
	if c.JSON {
		return console.NewJSON(a.Stdout).Encode(map[string]string{
			"store": r.Store, "certificate": ca.Fingerprint(r.Cert), "state": r.State.String(), "why": r.Why, "cure": r.Advice,
		})
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%-9s %s: %s\n", r.State, r.Store, console.Printable(r.Cert.Subject.CommonName))
	if r.Why != "" {
		fmt.Fprintf(&text, "          %s\n", console.Printable(r.Why))
	}
	if r.Advice != "" {
		fmt.Fprintf(&text, "          do: %s\n", console.Printable(r.Advice))
	}
	_, err := fmt.Fprint(a.Stdout, text.String())
	return err
}
