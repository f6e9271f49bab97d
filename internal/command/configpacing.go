package command

import (
	"time"

	"heed/internal/pace"
)

// PacingConfig is [pacing]: how requests to a site take turns.
type PacingConfig struct {
	MinDelay    time.Duration `toml:"min_delay"`    // 0: none of the operator's own
	MaxDelay    time.Duration `toml:"max_delay"`    // that is kept
	MaxWait     time.Duration `toml:"max_wait"`     // for a turn
	MaxParallel int           `toml:"max_parallel"` // requests to one site; 0: any number
	Share       string        `toml:"share"`        // group or agent
	VisitTime   string        `toml:"visit_time"`   // observe or obey
	RetryAfter  string        `toml:"retry_after"`  // obey or observe
	Observed    string        `toml:"observed"`     // record or wait
}

// check notes what cannot be meant.
func (c *PacingConfig) check(d *decoder) {
	if c.MaxDelay == 0 {
		d.problem("pacing.max_delay", `pacing.max_delay must be more than nothing, or no delay would be kept; the default is "1h"`)
	} else if c.MinDelay > c.MaxDelay {
		d.problem("pacing.min_delay", "pacing.min_delay = %q is longer than pacing.max_delay = %q, the longest delay that is kept; write less, or raise that", shortDuration(c.MinDelay), shortDuration(c.MaxDelay))
	}
	if c.MaxWait > mostWait {
		d.problem("pacing.max_wait", "pacing.max_wait = %q is longer than anything waits; write %q or less", shortDuration(c.MaxWait), shortDuration(mostWait))
	}
	d.oneOf("pacing.share", c.Share, "group", "agent")
	d.oneOf("pacing.visit_time", c.VisitTime, "observe", "obey")
	d.oneOf("pacing.retry_after", c.RetryAfter, "obey", "observe")
	d.oneOf("pacing.observed", c.Observed, "record", "wait")
}

// mostWait is longer than any client's patience.
const mostWait = 24 * time.Hour

// settings returns them as Turns take them.
func (c *PacingConfig) settings() pace.Settings {
	return pace.Settings{
		MinDelay: c.MinDelay, MaxDelay: c.MaxDelay, MaxWait: c.MaxWait, MaxParallel: c.MaxParallel,
		ByAgent: c.Share == "agent", ObeyVisits: c.VisitTime == "obey",
	}
}
