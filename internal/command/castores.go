package command

import (
	"fmt"
	"strings"

	"heed/internal/ca"
)

// storeFlags are what install and uninstall have in common.
type storeFlags struct {
	Config string `short:"c" env:"HEED_CONFIG" placeholder:"FILE" help:"Read settings from FILE instead of ./proxy.toml."`
	DryRun bool   `help:"Change nothing; say what would be done."`
	JSON   bool   `name:"json" help:"Print one JSON object per store and certificate."`
}

// CAInstallCmd is `heed ca install`.
type CAInstallCmd struct{ storeFlags }

// Help says which stores are meant.
func (c *CAInstallCmd) Help() string {
	return `Puts the certificate where programs look for the roots they trust: the system's
store, the NSS databases of this user's browsers, and Java's. Each is named,
with what was done. Do not call it with sudo, which has a state directory and a
CA of its own: for what this user may not change, the commands are printed.
heed run and heed env need none of this.
Exit status 0 when a store has the CA (or would have it) and none failed, else 1.

Example:

    heed ca install --dry-run && heed ca install`
}

// Run installs the CA.
func (c *CAInstallCmd) Run(a *App) error { return c.change(a, ca.Install) }

// CAUninstallCmd is `heed ca uninstall`.
type CAUninstallCmd struct{ storeFlags }

// Help says what stays.
func (c *CAUninstallCmd) Help() string {
	return `Takes the certificate, and those of earlier renewals, out of the stores that heed
ca install puts it into. The CA itself stays in the state directory.
Exit status 0 when a store could be looked into and none failed, else 1.

Example:

    heed ca uninstall`
}

// Run uninstalls the CA.
func (c *CAUninstallCmd) Run(a *App) error { return c.change(a, ca.Uninstall) }

func (c *storeFlags) change(a *App, how func([]ca.Store, []ca.Root, bool) []ca.Result) error {
	authority, err := a.authority(c.Config)
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
		return Exit(exitNo)
	}
	return nil
}

// print tells what became of one certificate in one store.
func (c *storeFlags) print(a *App, r ca.Result) error {
	if c.JSON {
		return newJSON(a.Stdout).Encode(map[string]string{
			"store": r.Store, "certificate": ca.Fingerprint(r.Cert), "state": r.State.String(), "why": r.Why, "cure": r.Cure,
		})
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%-9s %s: %s\n", r.State, r.Store, printable(r.Cert.Subject.CommonName))
	if r.Why != "" {
		fmt.Fprintf(&text, "          %s\n", printable(r.Why))
	}
	if r.Cure != "" {
		fmt.Fprintf(&text, "          do: %s\n", printable(r.Cure))
	}
	_, err := fmt.Fprint(a.Stdout, text.String())
	return err
}
