package auditcmd

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"heed/internal/audit"
	"heed/internal/audit/replay"
	"heed/internal/audit/store"
	"heed/internal/config"
	"heed/internal/tools/audittest"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

func unpainted(_, text string) string { return text }

// flat returns a text with one blank between words.
func flat(text string) string { return strings.Join(strings.Fields(text), " ") }

// The key and the URL of a request that is signed for the site are in the record, in the
// log, in the list as JSON and in the explanation.
func TestWhy_TheKeyOfASignedRequest(t *testing.T) {
	t.Parallel()
	const key, by = "poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U", "https://bots.example/.well-known/http-message-signatures-directory?token=x"
	privacy := must.Get(audit.NewPrivacy(audit.ClientsHashed, []string{"token"}, make([]byte, audit.PrivacyKeySize)))(t)
	var line bytes.Buffer
	log := audit.NewLog(slog.NewJSONHandler(&line, nil), nil)
	entries := []*audit.Entry{{SignedKey: key, SignedBy: by}, {}}
	for _, e := range entries {
		e.ID, e.Time, e.Client, e.Mode, e.Method, e.Scheme, e.Host, e.Target = audit.NewID(), time.Now(), "192.0.2.7:4711", "enforce", "GET", "https", "site.test", "/"
		e.Decision = rules.Decision{Verdict: rules.Allow, Reason: rules.ReasonOverride}
		must.OK(t, log.Decided(e))
		log.Ended(e)
	}
	records := must.Get(store.Records(audittest.Record(t, store.Options{Privacy: privacy}, entries...)))(t)
	n := 0
	err := replay.List(t.Context(), records, store.Filter{}, func(d *replay.Decision) error {
		x, err := replay.ExplainID(t.Context(), records[0], config.RecordedRules, d.ID)
		if err != nil {
			return err
		}
		var out strings.Builder
		if err := printWhy(&out, unpainted, x); err != nil {
			return err
		}
		text, err := json.Marshal(d)
		signed := n == 0
		must.Equal(t, strings.Contains(flat(out.String()), "signed for the site with the key "+key+", published at "+by), signed, "decision %d is explained as\n%s", n, &out)
		must.Equal(t, strings.Contains(string(text), `"signed_key":"`+key+`","signed_by":"`+by+`"`), signed, "decision %d is listed as %s", n, text)
		n++
		return err
	})
	must.Need(t, err == nil && n == 2, "%v %v", n, err)
	c := strings.Count(line.String(), `"signed_key":"`+key+`","signed_by":"`+by+`"`)
	must.True(t, c == 1, "the log has it %d times:\n%s", c, &line)
}

// A redirected connection that is neither HTTP nor TLS is found by the address that it is
// listed with.
func TestWhy_ARedirectedConnection(t *testing.T) {
	t.Parallel()
	var entries []*audit.Entry
	for _, host := range []string{"192.0.2.8:2222", "[2001:db8::8]:22", "site.test:443"} {
		entries = append(entries, &audit.Entry{ID: audit.NewID(), Time: time.Now(), Client: "192.0.2.7:4711", Mode: "enforce", Method: audit.MethodTCP, Scheme: "tcp", Host: host,
			Decision: rules.Decision{Verdict: rules.Allow, Reason: rules.ReasonNotHTTP}, Judged: audit.NotJudged, Outcome: audit.Outcome{Status: 200}})
	}
	records := must.Get(store.Records(audittest.Record(t, store.Options{}, entries...)))(t)
	err := replay.List(t.Context(), records, store.Filter{}, func(d *replay.Decision) error {
		find, err := (&WhyCmd{What: d.URL}).finder(time.Now())
		if err != nil {
			return err
		}
		x, err := find(t.Context(), records[0])
		if err != nil {
			return err
		}
		var out strings.Builder
		if err := printWhy(&out, unpainted, x); err != nil {
			return err
		}
		must.True(t, strings.HasPrefix(out.String(), "allow TCP "+d.URL+"\n") && !strings.Contains(out.String(), "CONNECT"),
			"%s is explained as\n%s", d.URL, &out)
		return nil
	})
	must.OK(t, err)
}
