package command

// CACmd is `heed ca`: heed's certificate authority.
type CACmd struct {
	Path      CAPathCmd      `cmd:"" default:"1" help:"Print where the CA's certificate is; make the CA if there is none."`
	Print     CAPrintCmd     `cmd:"" help:"Print the CA's certificate."`
	Bundle    CABundleCmd    `cmd:"" help:"Print the system's roots and the CA's certificate."`
	Install   CAInstallCmd   `cmd:"" help:"Put the CA into this machine's trust stores."`
	Uninstall CAUninstallCmd `cmd:"" help:"Take the CA out of this machine's trust stores."`
	Renew     CARenewCmd     `cmd:"" help:"Make a new CA beside the old one."`
}

// CAPathCmd is `heed ca path`.
type CAPathCmd struct{}

// CAPrintCmd is `heed ca print`.
type CAPrintCmd struct{}

// CABundleCmd is `heed ca bundle`.
type CABundleCmd struct{}

// CAInstallCmd is `heed ca install`.
type CAInstallCmd struct{}

// CAUninstallCmd is `heed ca uninstall`.
type CAUninstallCmd struct{}

// CARenewCmd is `heed ca renew`.
type CARenewCmd struct{}
