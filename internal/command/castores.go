package command

// CAInstallCmd is `heed ca install`.
type CAInstallCmd struct{}

// CAUninstallCmd is `heed ca uninstall`.
type CAUninstallCmd struct{}
