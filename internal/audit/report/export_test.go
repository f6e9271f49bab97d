package report_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"heed/internal/audit/report"
	"heed/internal/audit/store"
	"heed/internal/output/table"
	"heed/internal/tools/testkit/must"
)

// exported returns the lines of an export as JSON.
func exported(t *testing.T, q report.Query, paths ...string) []map[string]any {
	t.Helper()
	var out bytes.Buffer
	must.OK(t, report.Export(context.Background(), read(t, paths...), q, report.Lines(&out)))
	var rows []map[string]any
	for d := json.NewDecoder(&out); d.More(); {
		var row map[string]any
		must.OK(t, d.Decode(&row))
		rows = append(rows, row)
	}
	return rows
}

func TestHeed_AnExportHasEveryDecisionWithAllThatIsRecordedOfIt(t *testing.T) {
	rows := exported(t, report.Query{}, aDay(t))
	must.Need(t, len(rows) == 9, "it has %d decisions, not 9", len(rows))
	refused := rows[3]
	for field, want := range map[string]any{
		"time": "2026-03-02T08:00:04.000000Z", "client": "192.0.2.7", "user_agent": "NewsBot/2.1", "url": "https://shop.example/private/x",
		"verdict": "refuse", "rule": "Disallow: /private", "line": 2.0, "status": 403.0, "from_site": false, "duration_ms": 120.0, "run_note": "a crawl for a test",
	} {
		must.Equal(t, refused[field], want, field)
	}
	tokens, ok := refused["tokens"].([]any)
	must.True(t, ok && tokens[0] == "newsbot", "tokens are %v", refused["tokens"])
	_, there := rows[8]["status"]
	must.True(t, !there, "a decision that did not end has a status")
	n := len(exported(t, report.Query{Filter: store.Filter{Client: "other", Host: "*.example", From: begun.Add(5 * time.Hour)}}, aDay(t)))
	must.True(t, n == 2, "of one client from a time on there are %d, not 2", n)
}

// A site receives nothing of a refused request, and so no other User-Agent either.
func TestExport_WhatARefusedRequestSent(t *testing.T) {
	r := newRecord(t)
	bot := r.asker("192.0.2.7", "newsbot", "NewsBot/2.1")
	_, err := r.tx.Exec("UPDATE asker SET sent = 'LabBot/1', sent_from = 'lab@example.org'")
	must.OK(r.t, err)
	for _, verdict := range []string{"refuse", "would-refuse", "allow"} {
		r.entry(0, bot, "shop.example", "/private", r.ground("path", verdict, "rule", "Disallow: /private", 2, nil, r.policy("shop.example", 0, "")), 0)
	}
	var sent []any
	for _, row := range exported(t, report.Query{}, r.file()) {
		sent = append(sent, row["sent_user_agent"], row["sent_from"])
	}
	want := []any{nil, nil, "LabBot/1", "lab@example.org", "LabBot/1", "lab@example.org"}
	must.True(t, slices.Equal(sent, want), "it sent %v, want %v", sent, want)
}

func TestHeed_SeveralRecordsAreExportedByTime(t *testing.T) {
	rows := exported(t, report.Query{}, aDay(t), aDay(t))
	must.Need(t, len(rows) == 18, "two records of 9 decisions come to %d", len(rows))
	for i := 1; i < len(rows); i++ {
		must.True(t, rows[i]["time"].(string) >= rows[i-1]["time"].(string),
			"decision %d is older than the one before it", i)
	}
}

func TestHeed_ATableOfHostileTextsIsStillATable(t *testing.T) {
	const hostile = "=cmd|' /C calc'!A0\",\n\r\x1b[2J"
	r := newRecord(t)
	r.entry(0, r.once("asker", "192.0.2.7", nil, nil, "enforce", hostile, "[]", 0, nil, nil), "shop.example", "/", r.ground("path", "allow", "no-rule", "", 0, nil, nil), 0)
	var out bytes.Buffer
	records := read(t, r.file())
	must.OK(t, report.Export(context.Background(), records, report.Query{}, table.NewWriter(&out)))
	rows, err := csv.NewReader(&out).ReadAll()
	must.Need(t, err == nil && len(rows) == 2, "it is read as %q, %v", rows, err)
	for i, name := range rows[0] {
		if cell := rows[1][i]; name == "user_agent" && cell != "'=cmd|' /C calc'!A0\",\\n\\r\\x1b[2J" {
			t.Errorf("the User-Agent is written as %q", cell)
		}
	}
}
