package command

// RunCmd is `heed run`: one command under a proxy of its own.
type RunCmd struct {
	Config   string `short:"c" type:"path" placeholder:"FILE" help:"Read settings from FILE instead of ./proxy.toml."`
	Upstream string `placeholder:"env|URL" help:"Reach sites through another proxy: a URL, or env for the one named in the environment."`
	Agent    string `placeholder:"NAME" help:"Declare the product token the command goes by; it is judged and sent. Needs --contact."`
	Contact  string `placeholder:"URL" help:"URL or mail address sent with --agent."`
	Quiet    bool   `short:"q" help:"Print no summary."`
	JSON     bool   `name:"json" help:"Print the summary as JSON."`
	Log      string `placeholder:"FILE" help:"Write a JSON line per decision to FILE; - for stderr."`

	Command []string `arg:"" optional:"" passthrough:"" name:"cmd" help:"The command and its arguments, after --."`
}
