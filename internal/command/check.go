package command

// CheckCmd is `heed check`: judges URLs as the proxy would.
type CheckCmd struct {
	Config string   `short:"c" type:"path" placeholder:"FILE" help:"Read settings from FILE instead of ./proxy.toml."`
	Robots string   `type:"path" placeholder:"FILE" help:"Judge against this robots.txt instead of the site's."`
	Agent  string   `placeholder:"UA" help:"A User-Agent string, or a product token."`
	Batch  bool     `help:"Read JSON Lines from stdin, write JSON Lines to stdout."`
	JSON   bool     `name:"json" help:"Print one JSON object per URL."`
	URLs   []string `arg:"" optional:"" name:"url" help:"The URLs to judge."`
}
