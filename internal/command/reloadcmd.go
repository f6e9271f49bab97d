package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// ReloadCmd is `heed reload`: new settings for the heed that runs.
type ReloadCmd struct {
	Quiet bool `short:"q" help:"Print nothing when the settings are in force."`
}

// Help is what `heed reload --help` prints at the end.
func (ReloadCmd) Help() string {
	return `The running heed reads its settings again and puts them in force whole, or says what is wrong with them and stays with those it has. Requests under way end under the settings they began with. SIGHUP does the same; the log then says how it went. What needs a restart is named.

  heed config check && heed reload

Exit status: 0 when the settings are in force; 1 when they are not, or heed is not running.`
}

// reloadPatience is how long a reload may take: it reads files, and passwords
// are not checked.
const reloadPatience = time.Minute

// Run has the running heed reload and says how that went.
func (c *ReloadCmd) Run(a *App) error {
	state, err := StateDir()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), reloadPatience)
	defer cancel()
	done, err := newControlClient(state).reload(ctx)
	if err != nil {
		refused := (*refusedJoin)(nil)
		switch {
		case errors.Is(err, errNotRunning):
			err = fmt.Errorf("heed is not running in %s\nIt reads its settings when it is started with `heed serve`", state)
		case errors.As(err, &refused):
			err = fmt.Errorf("%s\nThe running heed stays with the settings it has", refused.Message)
		}
		a.complain(err)
		return Exit(exitNo)
	}
	for _, notice := range done.Notices {
		fmt.Fprintf(a.Stderr, "heed: %s\n", notice)
	}
	what := "in force"
	if done.Same {
		what = "in force, unchanged"
	}
	if !c.Quiet {
		fmt.Fprintf(a.Stdout, "%s: %s (%s)\n", done.Source, what, shortHash(done.Hash))
	}
	return nil
}

// reload has the running heed reload its settings.
func (c *controlClient) reload(ctx context.Context) (*reloaded, error) {
	resp, err := c.do(ctx, http.MethodPost, "/reload", nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	done := &reloaded{}
	return done, json.NewDecoder(resp.Body).Decode(done)
}
