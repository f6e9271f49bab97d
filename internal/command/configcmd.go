package command

// ConfigCmd is `heed config`: the settings, checked or shown.
type ConfigCmd struct {
	Check ConfigCheckCmd `cmd:"" default:"1" help:"Say what is wrong with the settings, without starting."`
	Show  ConfigShowCmd  `cmd:"" help:"Print the settings in use."`
}

// ConfigCheckCmd is `heed config check`.
type ConfigCheckCmd struct{}

// ConfigShowCmd is `heed config show`.
type ConfigShowCmd struct{}
