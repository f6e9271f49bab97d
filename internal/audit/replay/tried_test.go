package replay_test

import (
	"strings"
	"testing"

	"heed/internal/audit"
	"heed/internal/audit/replay"
	"heed/internal/audit/store"
	"heed/internal/check/why"
	"heed/internal/tools/audittest"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// What was wrong with a request is listed where its reason does not say it; the name in refused
// credentials is, too, hashed where the record hashes users, and so is
// the agent of a request that was refused before it was identified.
func TestList_NamesWhoTriedAPassword(t *testing.T) {
	t.Parallel()
	for clients, want := range map[audit.Clients]string{audit.ClientsFull: `; wrong; the name tried was "ann"`, audit.ClientsHashed: `; wrong; the name tried was "user-`} {
		privacy := must.Get(audit.NewPrivacy(clients, nil, make([]byte, audit.PrivacyKeySize)))(t)
		var entries []*audit.Entry
		for userAgent, reason := range map[string]rules.Reason{"GoodBot/1.0 (+https://bot.example/x)": rules.ReasonCredentials, "": rules.ReasonFailures, "BadBot/1": rules.ReasonMalformed} {
			entries = append(entries, &audit.Entry{ID: audit.NewID(), Client: "192.0.2.7:4711", UserAgent: userAgent, Tried: "ann", Detail: "wrong", Decision: rules.Decision{Reason: reason}})
		}
		record := must.Get(store.OpenRecord(audittest.Record(t, store.Options{Heed: "test", Privacy: privacy}, entries...)))(t)
		names := ""
		err := replay.List(t.Context(), []*store.Record{record}, store.Filter{}, func(d *replay.Decision) error {
			text := why.ResultText(d, why.Words)
			must.True(t, strings.HasPrefix(text, want) && d.User == "", "%q, user %q, want %q", text, d.User, want)
			names += why.ClientName(d)
			return nil
		})
		must.True(t, err == nil && strings.Contains(names, "goodbot@") && strings.Contains(names, "(no-name)@"),
			"%v, %q", err, names)
	}
}
