package config

import (
	"testing"
	"time"

	"heed/internal/judge/acl"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// The lists of a client, of its purposes and of the flags are obeyed together, also by the
// recorded settings; what is no name is a mistake.
func TestHeed_AlsoObeyIsReadAndJoined(t *testing.T) {
	c := settings(t, `
[signals]
also_obey = { training = ["Google-Extended", "ccbot"], search = ["Other"] }
[[client]]
name = "lab"
user_agent = "Lab*"
also_obey = ["CCBot"]
purpose = "training"
`)
	r := must.Get(c.Rules(time.Now))(t)
	again := must.Get(RecordedRules(r.Text))(t)
	o := rules.Origin{Scheme: "http", Host: "a.test", Port: 80}
	for _, r := range []*acl.Rules{r, again} {
		run := r.ForRun(acl.Flags{Terms: acl.Terms{AlsoObey: acl.Names{"GPTBot"}}})
		must.Same(t, run.For(run.ClientOf(acl.ClientInfo{UserAgent: "Lab/1"}), o, time.Now()).Obeyed.List(), []string{"CCBot", "GPTBot", "Google-Extended"}, "obeyed are")
	}
	for text, want := range map[string]string{
		"[signals]\nalso_obey = { learning = [\"CCBot\"] }\n":                                `"learning" is not a purpose`,
		"[signals]\nalso_obey = { training = [\"CCBot/2\"] }\n":                              "is not a product token",
		"[[client]]\nname = \"a\"\nuser_agent = \"a\"\nalso_obey = [\"CCBot\", \"ccbot\"]\n": "listed twice",
		"[[client]]\nname = \"a\"\nuser_agent = \"a\"\nalso_obey = [\"*\"]\n":                "is not a product token",
	} {
		must.Fail(t, must.Err(Load(testkit.Write(t, t.TempDir()+"/proxy.toml", text), testkit.BuiltIn(t))), want, text)
	}
}
