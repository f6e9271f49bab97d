package store_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"heed/internal/audit"
	"heed/internal/audit/store"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

func TestHeed_AnyTextIsKeptAsItIs(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.db")
	w := open(t, path, store.Options{})
	hostile := "a\x00b\xff\xfe\xed\xa0\xbd'\"\r\n;--\u202e"
	p := policy("site.test")
	e := asked(p, "/"+hostile)
	e.Decision = rules.Decision{Reason: rules.ReasonRule, Group: hostile, Rule: "Disallow: /" + hostile, Line: 3, Token: hostile, Variant: "v1"}
	e.UserAgent, e.Raw, e.Page, e.Part, e.Method, e.Detail, e.User = hostile, "/"+hostile, hostile, hostile, hostile, hostile, hostile
	e.Sent, e.SentFrom, e.Settled, e.Client = hostile, hostile, hostile, hostile
	must.OK(t, w.Decided(e))
	e.Outcome = audit.Outcome{Status: 403, Err: hostile}
	w.Ended(e)
	must.OK(t, w.Close(""))
	proof, err := store.Verify(t.Context(), path, nil, nil)
	must.Need(t, err == nil && proof.Whole, "not whole: %+v, %v", proof, err)
	db := view(t, path)
	var rule, agent, method, why string
	var target []byte
	must.OK(t, db.QueryRow("SELECT rule, user_agent, method, error, target FROM entry JOIN ground ON ground.id = ground JOIN asker ON asker.id = asker JOIN outcome ON entry = seq").
		Scan(&rule, &agent, &method, &why, &target))
	for _, got := range []string{strings.TrimPrefix(rule, "Disallow: /"), agent, method, why, strings.TrimPrefix(string(target), "/")} {
		must.Equal(t, got, hostile, "%q, kept", hostile)
	}
}

func TestHeed_WhatClientsAndSitesChooseIsBounded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.db")
	w := open(t, path, store.Options{})
	long := strings.Repeat("x", 200_000)
	p := policy("site.test")
	e := asked(p, "/"+long) // the proxy has a limit for it; the record keeps it whole
	e.UserAgent, e.Page, e.Part, e.Method, e.Detail, e.User, e.Sent, e.SentFrom = long, long, long, long, long, long, long, long
	must.OK(t, w.Decided(e))
	e.Outcome.Err = long
	w.Ended(e)
	must.OK(t, w.Close(""))
	db := view(t, path)
	n := count(t, db, "SELECT length(target) FROM entry")
	must.True(t, n == len(long)+1, "the target has %d octets", n)
	for _, column := range []string{"user_agent", "user", "sent", "sent_from", "method", "page", "part", "detail", "error"} {
		n := count(t, db, "SELECT max(length("+column+")) FROM entry JOIN ground ON ground.id = ground JOIN asker ON asker.id = asker JOIN outcome ON entry = seq")
		must.True(t, n == 4096+len("..."), "%s has %d octets", column, n)
	}
}

// TestHeed_ARobotsTxtIsStoredOnceByEachRun: what a run writes refers to nothing
// before it, so that the oldest part of a record can go.
func TestHeed_ARobotsTxtIsStoredOnceByEachRun(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.db")
	for range 3 {
		w := open(t, path, store.Options{})
		for _, host := range []string{"a.test", "b.test"} {
			must.OK(t, w.Decided(asked(policy(host), "/")))
		}
		must.OK(t, w.Close(""))
	}
	db := view(t, path)
	must.Equal(t, count(t, db, "SELECT count(*) FROM body"), 3, "copies of the file of three runs and two sites")
	var sum []byte
	err := db.QueryRow("SELECT sha256 FROM body").Scan(&sum)
	must.True(t, err == nil && bytes.Equal(sum, digestOf(robots)), "under the digest %x (%v)", sum, err)
}

func digestOf(b []byte) []byte {
	d := rules.DigestOf(b)
	return d[:]
}
