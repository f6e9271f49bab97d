package audit

import (
	"log/slog"
	"strings"
	"time"

	"heed/internal/base/safetext"
	"heed/rules"
)

// MaxText bounds each text that a client or a site chose in a line of the log or a row of the
// record, but for the target of a request, in bytes.
const MaxText = 4096

// CutMark is the end of a text that was cut.
const CutMark = "..."

// Bounded returns at most MaxText octets of a text.
func Bounded(s string) string {
	if len(s) > MaxText {
		return s[:MaxText] + CutMark
	}
	return s
}

// configDigits is the number of digits logged of a configuration's hash.
const configDigits = 12

// appendDecision appends the attributes known when the request was decided on.
func appendDecision(a []slog.Attr, e *Entry) []slog.Attr {
	d := &e.Decision
	name, from := agentOf(e)
	a = append(a,
		slog.String("id", e.ID.String()),
		slog.String("client", e.Client),
		slog.String("agent", name),
		slog.String("agent_from", from),
		slog.String("user_agent", Bounded(e.UserAgent)),
		slog.String("method", Bounded(e.Method)),
		slog.String("url", Bounded(e.URL())),
		slog.String("judged", e.Judged.String()),
		slog.String("verdict", d.Verdict.String()),
		slog.String("reason", string(d.Reason)),
	)
	a = appendText(a, "also_obey", strings.Join(e.AlsoObey, " "))
	if e.Part != "" {
		a = append(a, slog.String("part", e.Part), slog.String("page", Bounded(e.Page)))
	}
	if e.Judged == ByHost {
		a = append(a, slog.Int("unseen_rules", int(e.Unseen)))
	}
	a = appendText(a, "group", d.Group)
	a = appendText(a, "rule", d.Rule)
	if d.Line != 0 {
		a = append(a, slog.Int("line", d.Line))
	}
	a = appendText(a, "variant", d.Variant)
	a = appendPolicy(a, e)
	a = appendPace(a, e)
	a = appendText(a, "raw_target", safetext.Octets(e.Raw))
	a = appendSettings(a, e)
	a = appendText(a, "purpose", strings.Join(e.Purposes, ","))
	a = appendText(a, "signals", e.Said)
	if e.Revises != nil {
		a = append(a, slog.String("revises", e.Revises.String()))
	}
	return appendText(a, "detail", e.DetailWith(strings.Clone))
}

// appendText appends a text unless it is empty.
func appendText(a []slog.Attr, key, value string) []slog.Attr {
	if value == "" {
		return a
	}
	return append(a, slog.String(key, Bounded(value)))
}

// appendPolicy appends the age of the rules.
func appendPolicy(a []slog.Attr, e *Entry) []slog.Attr {
	if e.Policy == nil {
		return a
	}
	source := e.Policy.Source()
	if source.State != rules.Unreachable {
		a = append(a, slog.Int64("policy_age_s", int64(e.PolicyAge/time.Second)))
	}
	if source.Stale {
		a = append(a, slog.Bool("stale", true))
	}
	if e.PolicyAge < time.Second { // the first decisions by it; the record has it with the policy
		a = appendText(a, "robots_note", source.Note)
	}
	return a
}

// appendPace appends the crawl delay and the time waited for it.
func appendPace(a []slog.Attr, e *Entry) []slog.Attr {
	if e.DelayAsked > 0 {
		a = append(a, slog.Float64("delay_asked_ms", milliseconds(e.DelayAsked)))
	}
	if e.TurnWaited > 0 {
		a = append(a, slog.Float64("turn_ms", milliseconds(e.TurnWaited)))
	}
	if e.Owed > 0 {
		a = append(a, slog.Float64("owed_ms", milliseconds(e.Owed)))
	}
	return appendText(a, "pace", e.PaceNote)
}

// appendSettings appends the settings that applied to the client and the site.
func appendSettings(a []slog.Attr, e *Entry) []slog.Attr {
	a = appendText(a, "sent_user_agent", e.Sent)
	a = appendText(a, "sent_from", e.SentFrom)
	a = appendText(a, "signed_key", e.SignedKey)
	a = appendText(a, "signed_by", e.SignedBy)
	a = appendText(a, "user", e.User)
	a = appendText(a, "client_name", e.ClientName)
	if e.Mode != "enforce" {
		a = appendText(a, "mode", e.Mode)
	}
	a = appendText(a, "config", e.Config[:min(configDigits, len(e.Config))])
	return appendText(a, "settled", e.Settled)
}

// appendOutcome appends the result of the exchange.
func appendOutcome(a []slog.Attr, e *Entry) []slog.Attr {
	o := &e.Outcome
	by := "heed"
	if o.FromSite {
		by = "site"
	}
	a = append(a,
		slog.Int("status", o.Status),
		slog.String("by", by),
		slog.String("outcome", e.Became()),
		slog.Int64("bytes_in", o.BytesIn),
		slog.Int64("bytes_out", o.BytesOut),
		slog.Float64("waited_ms", milliseconds(o.Waited)),
		slog.Float64("duration_ms", milliseconds(o.Duration)),
	)
	if d := o.Late; d != nil {
		a = append(a, slog.String("late_verdict", d.Verdict.String()), slog.String("late_reason", string(d.Reason)))
		if d.Line != 0 {
			a = append(a, slog.String("late_rule", Bounded(d.Rule)), slog.Int("late_line", d.Line))
		}
	}
	a = appendText(a, "page_signals", o.Said)
	if o.SiteStatus != 0 {
		a = append(a, slog.Int("site_status", o.SiteStatus))
	}
	a = appendText(a, "site_answer", o.SiteAnswer)
	if o.Truncated {
		a = append(a, slog.Bool("truncated", true))
	}
	a = appendText(a, "site_asks", o.Note)
	return appendText(a, "error", o.Err)
}

// agentOf returns the product token whose group decided, else the client's own, and its
// source.
func agentOf(e *Entry) (name, from string) {
	if e.Agent == nil {
		return "", "none"
	}
	role := e.Agent.Role
	if e.Decision.Token != "" {
		role = e.Decision.Role
	}
	switch {
	case role != rules.Seen:
		from = role.String()
	case e.UserAgent == "" && e.Sent == "":
		return "*", "none"
	default:
		from = "user-agent"
	}
	switch {
	case e.Decision.Token != "":
		return Bounded(e.Decision.Token), from
	case len(e.Agent.Tokens) > 0:
		return Bounded(e.Agent.Name()), from
	default:
		return "*", from
	}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
