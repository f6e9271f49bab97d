package command

import (
	"fmt"
	"strings"
)

// caRemarkDays is from when on the days that the CA has left are told.
const caRemarkDays = 30

// greet prints the three lines a person needs, and what they should know
// beside: which upstream proxy is used, and which is not.
func (d *daemon) greet(a *App) {
	fmt.Fprintf(a.Stderr, "heed listens on http://%s\n", strings.Join(d.addresses(), ", http://"))
	fmt.Fprintf(a.Stderr, "Point a client at it:  eval \"$(heed env)\"\n")
	fmt.Fprintf(a.Stderr, "Its CA certificate is  %s%s\n", d.authority.CertPath(), daysLeft(d.authority.DaysLeft(a.Now())))
	cfg, through := d.current().cfg, d.current().ways.proxy
	for _, text := range cfg.unjudged() {
		fmt.Fprintf(a.Stderr, "heed: %s\n", text)
	}
	if remark := cfg.Limits.remark(openFiles()); remark != "" {
		fmt.Fprintf(a.Stderr, "heed: %s\n", remark)
	}
	found := Inspect(a.Environ, "", d.addresses()[0])
	switch proxy := through; {
	case proxy != nil && proxy.All != "":
		fmt.Fprintf(a.Stderr, "heed: sites are reached through %s\n", redactURL(proxy.All))
	case proxy != nil:
		fmt.Fprintf(a.Stderr, "heed: sites are reached through the proxy that the environment names (%s)\n", list(found.Proxies))
	case cfg.Upstream.Proxy == "env":
		fmt.Fprintln(a.Stderr, "heed: sites are reached directly: the environment names no proxy")
	case len(found.Proxies) > 0:
		fmt.Fprintf(a.Stderr, "heed: the proxy that the environment names is not used (%s); to go through it, add --upstream env\n", list(found.Proxies))
	}
	for _, notice := range cfg.notices(a.Now()) {
		fmt.Fprintf(a.Stderr, "heed: %s\n", notice)
	}
	if through != nil {
		fmt.Fprintln(a.Stderr, "heed: that proxy looks names up, so [access] goes by names and by hosts that are addresses, not by where names lead")
	}
}

// daysLeft is the remark on a CA that ends soon; empty before.
func daysLeft(days int) string {
	switch {
	case days > caRemarkDays:
		return ""
	case days == 1:
		return "  (1 day left; make the next one with `heed ca renew`)"
	}
	return fmt.Sprintf("  (%d days left; make the next one with `heed ca renew`)", days)
}
