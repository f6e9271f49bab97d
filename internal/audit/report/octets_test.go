package report_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"

	"heed/internal/audit"
	"heed/internal/audit/replay"
	"heed/internal/audit/report"
	"heed/internal/audit/store"
	"heed/internal/base/safetext"
	"heed/internal/output/table"
	"heed/internal/tools/audittest"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// oddTargets are targets that clients send, and some that none should.
func oddTargets() []string {
	all := []string{
		"/plain?q=1", "/100%-cotton", "/a%zz", "/%", "/a|b\"{^}", "/caf\u00e9", "/caf\xe9", "/a\x00b", "/a b\t\r\n", "/\u202egnp.exe", "\xff",
		`/\x41`, `/\x`, `/\xg0`, `/back\slash`, `/\\x5C`, "", "/a\x7f", "/ends\xc3",
	}
	random := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		target := []byte("/")
		for range random.IntN(40) {
			target = append(target, "\\x4aF%"[random.IntN(6)], byte(random.Uint32()))
		}
		all = append(all, string(target))
	}
	return all
}

// A target is in every output as its octets, and can be told from any other.
func TestRecord_TargetsKeepTheirOctets(t *testing.T) {
	t.Parallel()
	targets := oddTargets()
	var entries []*audit.Entry
	var logged bytes.Buffer
	log := audit.NewLog(slog.NewJSONHandler(&logged, nil), nil)
	for _, target := range targets {
		e := &audit.Entry{
			ID: audit.NewID(), Client: "192.0.2.7:4711", Mode: "enforce", Method: "GET", Scheme: "https", Host: "a.test", Target: target, Raw: target,
			Decision: rules.Decision{Verdict: rules.Refuse, Reason: rules.ReasonMalformed},
		}
		must.OK(t, log.Decided(e))
		log.Ended(e)
		entries = append(entries, e)
	}
	path := audittest.Record(t, store.Options{Heed: "test"}, entries...)

	of := map[string][]string{}
	for d := json.NewDecoder(&logged); ; {
		var line struct{ URL, Raw_target string }
		if err := d.Decode(&line); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		of["url of the log"] = append(of["url of the log"], line.URL)
		of["raw_target of the log"] = append(of["raw_target of the log"], "https://a.test"+line.Raw_target)
	}
	for _, row := range exported(t, report.Query{}, path) {
		of["url of the lines"] = append(of["url of the lines"], row["url"].(string))
		of["target of the lines"] = append(of["target of the lines"], "https://a.test"+row["target"].(string))
	}
	records := read(t, path)
	var out bytes.Buffer
	must.OK(t, report.Export(context.Background(), records, report.Query{}, table.NewWriter(&out)))
	rows := must.Get(csv.NewReader(&out).ReadAll())(t)
	for _, row := range rows[1:] {
		of["url of the table"] = append(of["url of the table"], row[slices.Index(rows[0], "url")])
	}
	must.OK(t, replay.List(context.Background(), records, store.Filter{}, func(d *replay.Decision) error {
		of["url of the list"] = append(of["url of the list"], d.URL)
		return nil
	}))

	for output, urls := range of {
		must.Need(t, len(urls) == len(targets), "%s: %d of %d decisions", output, len(urls), len(targets))
		for i, target := range targets {
			must.Equal(t, urls[i], "https://a.test"+safetext.Octets(target), "%s: %q", output, target)
		}
	}
	must.Equal(t, len(of), 6, "outputs were compared")
}
