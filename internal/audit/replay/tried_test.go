package replay_test

import (
	"path/filepath"
	"strings"
	"testing"

	"heed/internal/audit"
	"heed/internal/audit/replay"
	"heed/internal/audit/store"
	"heed/internal/check/why"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// What was wrong with a request is listed where its reason does not say it; the name in refused
// credentials is, too, hashed where the record hashes users, and so is
// the agent of a request that was refused before it was identified.
func TestList_NamesWhoTriedAPassword(t *testing.T) {
	t.Parallel()
	for clients, want := range map[audit.Clients]string{audit.ClientsFull: `; wrong; the name tried was "ann"`, audit.ClientsHashed: `; wrong; the name tried was "user-`} {
		privacy, err := audit.NewPrivacy(clients, nil, make([]byte, audit.PrivacyKeySize))
		must.OK(t, err)
		path := filepath.Join(t.TempDir(), "audit.db")
		w, err := store.Open(path, store.Options{Heed: "test", Privacy: privacy})
		must.OK(t, err)
		for userAgent, reason := range map[string]rules.Reason{"GoodBot/1.0 (+https://bot.example/x)": rules.ReasonCredentials, "": rules.ReasonFailures, "BadBot/1": rules.ReasonMalformed} {
			e := &audit.Entry{ID: audit.NewID(), Client: "192.0.2.7:4711", UserAgent: userAgent, Tried: "ann", Detail: "wrong", Decision: rules.Decision{Reason: reason}}
			must.OK(t, w.Decided(e))
			w.Ended(e)
		}
		must.OK(t, w.Close(""))
		record, err := store.OpenRecord(path)
		must.OK(t, err)
		names := ""
		err = replay.List(t.Context(), []*store.Record{record}, store.Filter{}, func(d *replay.Decision) error {
			if text := why.ResultText(d, why.Words); !strings.HasPrefix(text, want) || d.User != "" {
				t.Errorf("%q, user %q, want %q", text, d.User, want)
			}
			names += why.ClientName(d)
			return nil
		})
		if err != nil || !strings.Contains(names, "goodbot@") || !strings.Contains(names, "(no-name)@") {
			t.Errorf("%v, %q", err, names)
		}
	}
}
