package replay_test

import (
	"testing"
	"time"

	"heed/internal/audit"
	"heed/internal/audit/replay"
	"heed/internal/audit/store"
	"heed/internal/judge"
	"heed/internal/judge/acl"
	"heed/internal/tools/audittest"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// A target with a redacted value is judged again where no value can change the verdict,
// also by the exceptions of the settings.
func TestJudge_RedactedTargets(t *testing.T) {
	t.Parallel()
	host := must.Get(acl.ParseHostPattern("a.test"))(t)
	never := must.Get(acl.NewException(acl.Exception{Patterns: []string{"/vault/*open"}, Refuse: true, Reason: "never"}))(t)
	settings := &acl.Rules{Hosts: []acl.Host{{Match: []acl.HostPattern{host}, Exceptions: []*acl.Exception{never}}}}
	robots := []byte("User-agent: *\nDisallow: /private\nDisallow: /shop/*pdf\n")
	answer := &rules.Snapshot{Origin: rules.Origin{Scheme: "https", Host: "a.test", Port: 443}, Status: 200, FetchedAt: time.Now()}
	answer.Pack(robots)
	policy := rules.New(rules.Source{Origin: answer.Origin, State: rules.Available, Status: 200, Snapshot: answer}, robots)
	for target, want := range map[string]replay.Class{
		"/c?token=s3cret":              replay.Same,
		"/private/x?token=s3cret":      replay.Same,
		"/shop/?token=s3cret&type=pdf": replay.Redacted,
		"/shop/?token=s3cret":          replay.Redacted,
		"/c;token=s3cret":              replay.Redacted, // "/../private" would be another page
		"/vault/?token=s3cret":         replay.Redacted, // by the exception
		"/vault/open?token=s3cret":     replay.Same,
		"/c?q=open":                    replay.Same,
	} {
		privacy := must.Get(audit.NewPrivacy(audit.ClientsFull, []string{"token"}, make([]byte, audit.PrivacyKeySize)))(t)
		agent := rules.Identify("TestBot/1.0")
		e := &audit.Entry{
			ID: audit.NewID(), Client: "192.0.2.7:4711", Mode: "enforce", Agent: agent, UserAgent: "TestBot/1.0", Config: "1", Settings: "1",
			Method: "GET", Scheme: "https", Host: "a.test", Target: target, Judged: audit.ByPath, Policy: policy,
		}
		q := judge.Query{Effective: settings.For(nil, policy.Source().Origin, e.Time), Names: acl.Identity{Own: agent}, Target: rules.NewTarget(target)}
		o, _ := q.Decide(policy)
		e.Decision, e.Settled = o.Decision, o.OperatorReason
		record := must.Get(store.OpenRecord(audittest.Record(t, store.Options{Heed: "test", Privacy: privacy}, e)))(t)
		r, err := replay.Judge(t.Context(), record, replay.Options{ParseRules: func(string) (*acl.Rules, error) { return settings, nil }})
		must.OK(t, err)
		got := map[replay.Class]int64{replay.Same: r.Same, replay.Redacted: r.Redacted}
		must.True(t, got[want] == 1, "%s is not %s: %+v", target, want, r)
	}
}

// With another User-Agent, clients obey what they obeyed besides their own names.
func TestHeed_AnotherAgentAlsoObeysTheSameNames(t *testing.T) {
	t.Parallel()
	settings := &acl.Rules{Clients: []acl.Client{{Name: "lab", UserAgent: acl.NewGlob("*Bot*"), Terms: acl.Terms{AlsoObey: acl.Names{"CCBot"}}}}}
	robots := []byte("User-agent: CCBot\nDisallow: /a\n\nUser-agent: TestBot\nDisallow: /b\n")
	answer := &rules.Snapshot{Origin: rules.Origin{Scheme: "https", Host: "a.test", Port: 443}, Status: 200, FetchedAt: time.Now()}
	answer.Pack(robots)
	policy := rules.New(rules.Source{Origin: answer.Origin, State: rules.Available, Status: 200, Snapshot: answer}, robots)
	agent := rules.Identify("TestBot/1.0")
	var entries []*audit.Entry
	for _, target := range []string{"/a", "/b", "/c"} {
		e := &audit.Entry{
			ID: audit.NewID(), Time: time.Now(), Client: "192.0.2.7:4711", ClientName: "lab", Mode: "enforce", Agent: agent, UserAgent: "TestBot/1.0", AlsoObey: []string{"CCBot"},
			Config: "1", Settings: "1", Method: "GET", Scheme: "https", Host: "a.test", Target: target, Judged: audit.ByPath, Policy: policy,
		}
		of := settings.For(&settings.Clients[0], answer.Origin, e.Time)
		q := judge.Query{Effective: of, Names: acl.Identity{Own: agent, Shown: e.UserAgent, Also: of.Obeyed}, Target: rules.NewTarget(target)}
		o, _ := q.Decide(policy)
		e.Decision = o.Decision
		entries = append(entries, e)
	}
	record := must.Get(store.OpenRecord(audittest.Record(t, store.Options{Heed: "test"}, entries...)))(t)
	r, err := replay.Judge(t.Context(), record, replay.Options{ParseRules: func(string) (*acl.Rules, error) { return settings, nil }, If: &replay.If{Agent: "OtherBot/1"}})
	must.OK(t, err)
	must.True(t, r.Same == 3 && r.If.Judged == 3 && r.If.Allowed == 1 && r.If.Refused == 0,
		"%d of 3 came out the same; with another agent %+v", r.Same, r.If)
}
