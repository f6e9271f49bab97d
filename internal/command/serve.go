package command

// ServeCmd is `heed serve`: the proxy in the foreground.
type ServeCmd struct {
	Config string `short:"c" type:"path" placeholder:"FILE" help:"Read settings from FILE instead of ./proxy.toml."`
	Listen string `short:"l" placeholder:"ADDR" help:"Listen on ADDR (host:port) instead of the configured address."`

	// Upstream overrides [upstream] proxy: "env" or a URL.
	Upstream string `placeholder:"env|URL" help:"Reach sites through another proxy: a URL, or env for the one named in the environment."`

	// Background is set by run when it starts a heed of its own.
	Background bool `hidden:""`
}
