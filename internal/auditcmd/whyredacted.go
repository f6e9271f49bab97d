package auditcmd

import (
	"context"
	"slices"
	"strings"

	"heed/internal/audit"
	"heed/internal/audit/replay"
	"heed/internal/audit/store"
	"heed/internal/config"
	"heed/internal/safetext"
	"heed/rules"
)

// explainRedacted explains the last decision that f selects about a URL whose recorded
// form may be one of targets with values replaced by hashes. It returns
// replay.ErrNone when the record has none.
func explainRedacted(ctx context.Context, r *store.Record, o rules.Origin, targets []string, f store.Filter) (*replay.Explained, error) {
	if !slices.ContainsFunc(targets, func(target string) bool { return strings.ContainsAny(target, "=@%") }) {
		return nil, replay.ErrNone
	}
	var last *replay.Decision
	f.Host = o.Host
	err := replay.List(ctx, []*store.Record{r}, f, func(_ int, d *replay.Decision) error {
		if !d.Redacted || last != nil && d.Time.Before(last.Time) {
			return nil
		}
		origin, recorded, err := rules.ParseURL(d.URL)
		if err == nil && origin == o && slices.ContainsFunc(targets, func(target string) bool { return audit.MayBeRedacted(recorded, target) }) {
			last = d
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case last == nil:
		return nil, replay.ErrNone
	}
	return replay.ExplainID(ctx, r, config.RecordedRules, last.ID)
}

// likely reports whether the decision was found although its URL is not the one asked
// for: values in it are hashes.
func (c *WhyCmd) likely(d *replay.Explained) bool {
	return d.Redacted && strings.Contains(c.What, "://") && safetext.ParseOctets(c.What) != d.URL
}
