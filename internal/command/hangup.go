package command

import (
	"os"
	"os/signal"
	"syscall"
)

// onHangup has every SIGHUP reload the settings until stop is called. When it
// comes because the terminal has gone that heed was started in, heed ends, unless
// that was to be ignored (nohup).
func (d *daemon) onHangup() (stop func()) {
	with := hasTerminal() && !signal.Ignored(syscall.SIGHUP)
	hangups, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(hangups, syscall.SIGHUP)
	go d.reloadOn(hangups, done, with)
	return func() {
		signal.Stop(hangups)
		close(done)
	}
}

func (d *daemon) reloadOn(hangups <-chan os.Signal, done <-chan struct{}, withTerminal bool) {
	for {
		select {
		case <-done:
			return
		case <-hangups:
		}
		if withTerminal && !hasTerminal() {
			d.stop()
			return
		}
		_, _ = d.reload() // the log says how it went
	}
}
