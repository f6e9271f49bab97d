package upstream

import (
	"context"
	"errors"
	"net"
	"net/http/httptrace"
	"net/netip"
	"sync"
	"time"
)

// resolvePatience is how long the addresses of both families are waited for. A name server that
// answers for one of them alone would hold the dial for as long as it may take.
const resolvePatience = time.Second

// dialResolved dials addr. While its host is not resolved within resolvePatience, the addresses
// of each family are resolved and dialled for themselves, too; the first connection counts
// (RFC 8305 §3 waits for the other family in the same way).
func dialResolved(ctx context.Context, d *net.Dialer, network, addr string) (net.Conn, error) {
	host, _, _ := net.SplitHostPort(addr)
	if _, err := netip.ParseAddr(host); err == nil || network != "tcp" {
		return d.DialContext(ctx, network, addr)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	resolved := make(chan struct{})
	done := sync.OnceFunc(func() { close(resolved) })
	type dialled struct {
		conn net.Conn
		err  error
	}
	results := make(chan dialled)
	dial := func(ctx context.Context, network string) {
		go func() {
			c, err := d.DialContext(ctx, network, addr)
			select {
			case results <- dialled{c, err}:
			case <-ctx.Done():
				if c != nil {
					c.Close()
				}
			}
		}()
	}
	dial(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{DNSDone: func(httptrace.DNSDoneInfo) { done() }}), network)
	patience := time.NewTimer(resolvePatience)
	defer patience.Stop()
	var failed error
	for running := 1; running > 0; {
		select {
		case <-resolved:
			patience.Stop()
			resolved = nil
		case <-patience.C:
			running += 2
			dial(ctx, "tcp4")
			dial(ctx, "tcp6")
		case r := <-results:
			if running--; r.err == nil {
				return r.conn, nil
			}
			if dns := (*net.DNSError)(nil); failed == nil || errors.As(failed, &dns) { // what was dialled says more
				failed = r.err
			}
		}
	}
	return nil, failed
}
