package dashboard

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"heed/internal/config"
	"heed/internal/control"
)

type settingsPage struct {
	Source, Hash string
	Lines        []settingLine
	Changed      int // lines
	Breaks       []control.Break
	Granted      []control.Exception
	Lasting      []lasting
}

// lasting is an exception in proxy.toml.
type lasting struct {
	Hosts, Clients, What, Reason string
	Expires                      time.Time // zero: never
	Over                         bool      // it has expired
}

func (d *Dashboard) settings(*http.Request) (*view, error) {
	c := *d.Heed.Config()
	c.Hosts = slices.Clone(c.Hosts)
	p := &settingsPage{Source: c.Source(), Hash: c.Hash()}
	c.Redact()
	changed := "" // what differs from the defaults
	if d.Defaults != nil {
		changed = config.TreeText(c.Changed(d.Defaults))
	}
	p.Lines = settingLines(c.Text(), changed)
	for _, l := range p.Lines {
		if l.Changed {
			p.Changed++
		}
	}
	s := d.Heed.Status()
	p.Breaks, p.Granted = s.Breaks, s.Exceptions
	for i := range c.Hosts {
		if x, ok := lastingOf(&c.Hosts[i], d.Now()); ok {
			p.Lasting = append(p.Lasting, x)
		}
	}
	return &view{Page: "settings", Title: "Settings", Data: p}, nil
}

// settingLine is a line of the settings.
type settingLine struct {
	Text    string
	Changed bool // it differs from the defaults
}

// settingLines returns the lines of the settings. Those that are in changed, in the same
// table, are marked.
func settingLines(text, changed string) (all []settingLine) {
	in := func(text string, each func(table, line string)) {
		table := ""
		for line := range strings.Lines(text) {
			if line = strings.TrimRight(line, "\r\n"); strings.HasPrefix(line, "[") {
				table = line
			}
			each(table, line)
		}
	}
	marked := map[[2]string]bool{}
	in(changed, func(table, line string) { marked[[2]string{table, line}] = line != "" && line != table })
	in(text, func(table, line string) { all = append(all, settingLine{line, marked[[2]string{table, line}]}) })
	return all
}

// lastingOf returns the exception of a [[host]]; false when it has none.
func lastingOf(h *config.HostConfig, now time.Time) (x lasting, ok bool) {
	var what []string
	for _, part := range []struct {
		word string
		list []string
	}{{"allow", h.Allow}, {"refuse", h.Refuse}} {
		if len(part.list) > 0 {
			what = append(what, part.word+" "+strings.Join(part.list, ", "))
		}
	}
	if h.RobotsFile != "" {
		what = append(what, "the file "+h.RobotsFile+" in place of its robots.txt")
	}
	if h.Crawl != nil && !*h.Crawl {
		what = append(what, "a service that is not crawled")
	}
	if h.Mode != "" {
		what = append(what, "mode "+h.Mode)
	}
	x = lasting{strings.Join(h.Match, ", "), strings.Join(h.Clients, ", "), strings.Join(what, "; "), h.Reason, h.Expires.Time, false}
	x.Over = !x.Expires.IsZero() && !x.Expires.After(now)
	return x, len(what) > 0
}
