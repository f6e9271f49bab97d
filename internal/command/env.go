package command

// EnvCmd is `heed env`: the variables of `heed run`, for a shell.
type EnvCmd struct {
	Config string `short:"c" type:"path" placeholder:"FILE" help:"Read settings from FILE instead of ./proxy.toml."`
	Shell  string `enum:"sh,fish,powershell" default:"sh" help:"The shell to print for: sh, fish or powershell."`
	Unset  bool   `help:"Print what takes the variables away again."`
}
