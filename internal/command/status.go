package command

// StatusCmd is `heed status`: is it well?
type StatusCmd struct {
	Quiet bool `short:"q" help:"Print nothing; the exit status tells."`
	JSON  bool `name:"json" help:"Print the status as JSON."`
}
