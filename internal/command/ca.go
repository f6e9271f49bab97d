package command

import (
	"errors"
	"fmt"
	"time"

	"heed/internal/ca"
)

// CACmd is `heed ca`: heed's certificate authority.
type CACmd struct {
	Path      CAPathCmd      `cmd:"" default:"withargs" help:"Print where the CA's certificate is; make the CA if there is none (also plain heed ca)."`
	Print     CAPrintCmd     `cmd:"" help:"Print the CA's certificate."`
	Bundle    CABundleCmd    `cmd:"" help:"Print the system's roots and the CA's certificate."`
	Install   CAInstallCmd   `cmd:"" help:"Put the CA into this machine's trust stores."`
	Uninstall CAUninstallCmd `cmd:"" help:"Take the CA out of this machine's trust stores."`
	Renew     CARenewCmd     `cmd:"" help:"Make a new CA beside the old one."`
}

// authority returns the authority that a heed started here with the settings
// in file would use.
func (a *App) authority(file string) (*ca.Authority, error) {
	cfg, err := Load(file, a.Defaults)
	if err != nil {
		return nil, err
	}
	stateDir := ""
	if cfg.HTTPS.CACert == "" {
		if stateDir, err = StateDir(); err != nil {
			return nil, err
		}
	}
	return openCA(cfg, stateDir, a.Now)
}

// CAPathCmd is `heed ca path`.
type CAPathCmd struct {
	Config string `short:"c" env:"HEED_CONFIG" placeholder:"FILE" help:"Read settings from FILE instead of ./proxy.toml."`
}

// Help says what the path is good for.
func (c *CAPathCmd) Help() string {
	return `The file holds the certificate alone, in PEM form: what a client, a browser or a
phone has to trust. The key lies beside it and leaves this machine for nobody.

Example:

    cp "$(heed ca path)" /usr/local/share/ca-certificates/heed.crt`
}

// Run prints the path.
func (c *CAPathCmd) Run(a *App) error {
	authority, err := a.authority(c.Config)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(a.Stdout, authority.CertPath())
	return err
}

// CAPrintCmd is `heed ca print`.
type CAPrintCmd struct {
	Config string `short:"c" env:"HEED_CONFIG" placeholder:"FILE" help:"Read settings from FILE instead of ./proxy.toml."`
}

// Help says what is printed.
func (c *CAPrintCmd) Help() string {
	return `Prints the certificate in PEM form. During a renewal it prints the old and the
new one. A running heed gives the same to anybody at http://127.0.0.1:3128/ca.pem.

Example:

    heed ca print | ssh HOST 'cat > heed-ca.pem'`
}

// Run prints the certificate.
func (c *CAPrintCmd) Run(a *App) error {
	authority, err := a.authority(c.Config)
	if err != nil {
		return err
	}
	_, err = a.Stdout.Write(authority.CertPEM())
	return err
}

// CABundleCmd is `heed ca bundle`.
type CABundleCmd struct {
	Config string `short:"c" env:"HEED_CONFIG" placeholder:"FILE" help:"Read settings from FILE instead of ./proxy.toml."`
}

// Help says whom the bundle is for.
func (c *CABundleCmd) Help() string {
	return `For clients whose setting replaces the roots they trust instead of adding to
them. A running heed gives the same to anybody at http://127.0.0.1:3128/bundle.pem.

Example:

    heed ca bundle > bundle.pem && curl --cacert bundle.pem ...`
}

// Run prints the bundle.
func (c *CABundleCmd) Run(a *App) error {
	authority, err := a.authority(c.Config)
	if err != nil {
		return err
	}
	bundle, err := ca.Bundle(authority, nil)
	if err != nil {
		return err
	}
	_, err = a.Stdout.Write(bundle)
	return err
}

// CARenewCmd is `heed ca renew`.
type CARenewCmd struct {
	Config string `short:"c" env:"HEED_CONFIG" placeholder:"FILE" help:"Read settings from FILE instead of ./proxy.toml."`
	Now    bool   `help:"Let the new CA sign from the next start on."`
}

// Help tells the two steps.
func (c *CARenewCmd) Help() string {
	return `The first call makes a new CA beside the old one. Both are in ca print, ca bundle
and heed run from then on, and the old one goes on signing: this is the time to
bring the new one to the clients. With --now the new one takes over, in every
heed started from then on; the old certificate stays in the bundle until it
expires. A CA that has expired is replaced at once.

Example:

    heed ca renew && heed ca install    # and some days later:
    heed ca renew --now`
}

// Run makes the new CA, or lets it take over.
func (c *CARenewCmd) Run(a *App) error {
	cfg, err := Load(c.Config, a.Defaults)
	if err != nil {
		return err
	}
	if cfg.HTTPS.CACert != "" {
		return errors.New("the CA that https.ca_cert names is not heed's to renew\nPut a new certificate and key in the place of " + cfg.HTTPS.CACert + " and " + cfg.HTTPS.CAKey)
	}
	stateDir, err := StateDir()
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
