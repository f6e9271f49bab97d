package config

import (
	"fmt"
	"reflect"
	"time"

	"heed/internal/pace"
	"heed/proxy/limit"
)

// Bounds of the settings.
const (
	minHeader  = 1 << 10  // octets; the least that a browser's request needs
	maxHeader  = 16 << 20 // octets, kept in memory per connection
	minTimeout = 100 * time.Millisecond
)

// checkLimits reports the problems of [limits] to d.
func (d *decoder) checkLimits(c *limit.Limits) {
	for key, n := range map[string]int{"streams": c.Streams, "site_connections": c.SiteConnections, "refusals_per_client": c.RefusalsPerClient} {
		if n == 0 {
			d.problem("limits."+key, "limits.%s must be 1 or more", key)
		}
	}
	for key, field := range fieldsByKey(reflect.ValueOf(*c)) {
		switch v := field.Interface().(type) {
		case limit.Size:
			if v < minHeader || v > maxHeader {
				d.problem("limits."+key, "limits.%s = %q is not possible; write a size from %q to %q", key, ByteSize(v), ByteSize(minHeader), ByteSize(maxHeader))
			}
		case time.Duration:
			if v < minTimeout {
				d.problem("limits."+key, "limits.%s = %q is too short for any client; write %q or more", key, shortDuration(v), shortDuration(minTimeout))
			}
		}
	}
	for _, pair := range []struct {
		key      string
		own, all int
	}{
		{"connections", c.ConnectionsPerClient, c.Connections}, {"tunnels", c.TunnelsPerClient, c.Tunnels}, {"requests", c.RequestsPerClient, c.Requests},
	} {
		if key := pair.key + "_per_client"; pair.all > 0 && pair.own > pair.all && !d.isWrong("limits."+pair.key) {
			d.problem("limits."+key, "limits.%s = %d is more than limits.%s = %d, so that one client could use all of them; write less, or 0", key, pair.own, pair.key, pair.all)
		}
	}
}

// Bounds of the number of client connections, which is derived from the limit of open
// files. Each connection may need another one to a site; a quarter of the files, but at least
// those that heed itself has open and at most otherFiles, are reserved for robots.txt fetches,
// files and connections that are being refused.
const (
	maxConnections = 16384
	minConnections = 8
	ownFiles       = 40
	otherFiles     = 1024
)

// ProxyLimits returns the limits of a proxy. files is how many files the process may
// open; 0 when it is unknown.
func (c *Config) ProxyLimits(files int) limit.Limits {
	l := c.Limits
	if l.Connections == 0 && files > 0 {
		l.Connections = roomFor(files)
	}
	return l.WithDefaults()
}

// roomFor returns how many client connections a limit of open files allows.
func roomFor(files int) int {
	return min(maxConnections, max(minConnections, (files-min(otherFiles, max(ownFiles, files/4)))/2))
}

// IdleSiteConnections returns how many connections to sites are kept for later requests, by
// the number of files that the process may open: half of them, since a crawl of many sites
// returns to each, and they are closed when files are scarce. 0 when files is 0, unknown.
func IdleSiteConnections(files int) int { return min(maxConnections, files/2) }

// LimitsRemark returns a warning when limits.connections exceeds what files, the limit of open
// files, allows; else it is empty. 0 files means unknown.
func (c *Config) LimitsRemark(files int) string {
	if files == 0 || c.Limits.Connections <= roomFor(files) {
		return ""
	}
	return fmt.Sprintf("limits.connections = %d is more than this process has room for: it may open %d files, which is enough for %d\nRaise the limit of open files (ulimit -n, LimitNOFILE=), or write a smaller number",
		c.Limits.Connections, files, roomFor(files))
}

// PacingConfig holds [pacing]: how requests to a site are delayed.
type PacingConfig struct {
	pace.Settings        // check sets its booleans from the words below
	Share         string `toml:"share"`         // group or agent
	VisitTime     string `toml:"visit_time"`    // observe or obey
	RetryAfter    string `toml:"retry_after"`   // obey or observe
	Observed      string `toml:"observed"`      // record or wait
	MinDelayPer   string `toml:"min_delay_per"` // site or address
}

// check reports the problems of the settings to d and sets the booleans of Settings.
func (c *PacingConfig) check(d *decoder) {
	if c.MaxDelay == 0 {
		d.problem("pacing.max_delay", `pacing.max_delay must be more than 0; the default is "1h"`)
	} else if c.MinDelay > c.MaxDelay && !d.isWrong("pacing.max_delay") {
		d.problem("pacing.min_delay", "pacing.min_delay = %q is longer than pacing.max_delay = %q; write less, or raise max_delay", shortDuration(c.MinDelay), shortDuration(c.MaxDelay))
	}
	if c.MaxWait > maxWait {
		d.problem("pacing.max_wait", "pacing.max_wait = %q is too long; write %q or less", shortDuration(c.MaxWait), shortDuration(maxWait))
	}
	d.oneOf("pacing.share", c.Share, "group", "agent")
	d.oneOf("pacing.visit_time", c.VisitTime, "observe", "obey")
	d.oneOf("pacing.retry_after", c.RetryAfter, "obey", "observe")
	d.oneOf("pacing.observed", c.Observed, "record", "wait")
	d.oneOfOrNone("pacing.min_delay_per", c.MinDelayPer, "site", "address") // empty: the settings are of a record from before there was one
	if c.ByAddress = c.MinDelayPer == "address"; c.ByAddress && c.MinDelay == 0 && !d.isWrong("pacing.min_delay") {
		d.problem("pacing.min_delay_per", `pacing.min_delay_per = "address" has no effect without pacing.min_delay; set that, such as min_delay = "1s"`)
	}
	c.ByAgent, c.ObeyVisits, c.PaceObserve = c.Share == "agent", c.VisitTime == "obey", c.Observed == "wait"
}

// maxWait is the greatest value of max_wait.
const maxWait = 24 * time.Hour
