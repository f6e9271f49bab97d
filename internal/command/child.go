package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
)

// child runs the command to its end and returns its exit status as a shell
// would. The command shares our process group, so that it stays in the
// terminal's foreground and stops and continues with us.
func (r *run) child(environ []string) (status int, err error) {
	cmd := exec.Command(r.path, r.args[1:]...)
	cmd.Args[0] = r.args[0]
	cmd.Env = environ
	cmd.Stdin, cmd.Stdout, cmd.Stderr = r.app.Stdin, r.app.Stdout, r.app.Stderr
	signals := make(chan os.Signal, 16)
	for _, s := range passedOn {
		if !signal.Ignored(s) { // what nohup had us ignore, the command ignores too
			signal.Notify(signals, s)
		}
	}
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return r.cannotStart(err)
	}
	watcher := watch(cmd.Process.Pid, r.own)
	defer func() { r.round = watcher.finish() }()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err = cmd.Wait()
	}()
	for {
		select {
		case s := <-signals:
			if !fromKeyboard(s) {
				_ = cmd.Process.Signal(s) // it may have ended just now
			}
		case <-ended:
			if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
				fmt.Fprintf(r.app.Stderr, "heed: %v\n", err)
			}
			return exitStatus(cmd.ProcessState), nil
		}
	}
}

// cannotStart says why the command did not start.
func (r *run) cannotStart(err error) (int, error) {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	fmt.Fprintf(r.app.Stderr, "heed: %s: the command cannot be run: %v\n", printable(r.args[0]), err)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, Exit(127) // a script's interpreter that is not there
	}
	return 0, Exit(126)
}
