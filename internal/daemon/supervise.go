package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"heed/internal/control"
)

// supervise reports to the service manager that heed serves, and gives it signs of life
// until the context of the returned function ends. A background heed has no manager: the
// variables of one in its environment are those of a program that started a run.
func (d *daemon) supervise() (end func()) {
	d.manager.Ready(d.serving())
	ctx, cancel := context.WithCancel(context.Background())
	go d.manager.Watch(ctx, d.alive)
	return cancel
}

// serving returns the status for the service manager.
func (d *daemon) serving() string {
	if all := d.listeners.addresses(); len(all) > 0 {
		return "listening on " + strings.Join(all, ", ")
	}
	return "listening on " + strings.Join(append(d.listeners.redirectedTo(false), d.listeners.redirectedTo(true)...), ", ")
}

// stopSlack is the time that ending takes at most, beyond the drain: the last
// decisions are written to the record, and the policies to their file.
const stopSlack = 30 * time.Second

// stoppingWithin reports to the service manager how long the end may take.
func (d *daemon) stoppingWithin(drain time.Duration) {
	d.manager.Stopping(drain+adminDrain+control.EndTimeout+stopSlack, fmt.Sprintf("stopping; open exchanges have %v to end", drain))
}

// alive returns an error when a listener for clients does not answer before the end of ctx.
// Without such a listener, the control socket must answer. A heed that is stopping is
// alive: the service manager limits the time for that.
func (d *daemon) alive(ctx context.Context) error {
	if d.stopping.Err() != nil {
		return nil
	}
	all := d.listeners.addresses()
	if len(all) == 0 {
		_, err := control.ReadStatus(ctx, d.state)
		return err
	}
	for _, addr := range all {
		if err := answers(ctx, addr); err != nil {
			return fmt.Errorf("the listener %s does not answer: %w", addr, err)
		}
	}
	return nil
}

// answers returns an error unless the listener answers a request for heed's own page, or
// closes the connection, as it does at its limits, before the end of ctx.
func answers(ctx context.Context, addr string) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	if end, limited := ctx.Deadline(); limited {
		if err := conn.SetDeadline(end); err != nil {
			return err
		}
	}
	if _, err = fmt.Fprintf(conn, "HEAD / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", addr); err == nil {
		_, err = conn.Read(make([]byte, 1))
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	return nil
}
