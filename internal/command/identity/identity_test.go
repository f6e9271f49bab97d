package identity

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heed/internal/config"
	"heed/internal/output/console"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/internal/trust/passport"
)

func TestMain(m *testing.M) { testkit.Main(m, 4) }

// moment is the time of the commands.
var moment = time.Now().Truncate(time.Second)

// command is one of the commands of heed identity.
type command interface{ Run(*console.App) error }

// run runs a command in this process and returns its output and its status.
func run(t *testing.T, c command) (out, errors string, status int) {
	t.Helper()
	var o, e bytes.Buffer
	a := &console.App{Stdin: strings.NewReader(""), Stdout: &o, Stderr: &e, Now: func() time.Time { return moment }, Defaults: testkit.BuiltIn(t)}
	status = a.Fail(c.Run(a))
	return o.String(), e.String(), status
}

// made makes a key and returns it.
func made(t *testing.T, path string, days int) *passport.Key {
	t.Helper()
	c := &NewCmd{File: path}
	if days != 0 {
		c.Days = &days
	}
	out, errors, status := run(t, c)
	must.Need(t, status == 0, "%s", errors)
	k := must.Get(config.ReadKey(path))(t)
	must.True(t, out == k.Thumbprint+"\n" && strings.Contains(errors, "sign = { key = \"file:"+path), "%s%s", out, errors)
	return k
}

func TestNew_WritesAKeyOnceForThisUserAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "news.key")
	k := made(t, path, 30)
	info, err := os.Stat(path)
	must.True(t, err == nil && info.Mode().Perm() == 0o600, "%v, %v", info.Mode(), err)
	must.True(t, k.NotAfter.Equal(moment.AddDate(0, 0, 30)), "it ends on %v", k.NotAfter)
	before := testkit.Read(t, path)
	if _, errors, status := run(t, &NewCmd{File: path}); status != 2 || !strings.Contains(errors, "exists already") || testkit.Read(t, path) != before {
		t.Errorf("again: %d %s", status, errors)
	}
	for _, days := range []int{-1, 0, 36501} {
		if _, errors, status := run(t, &NewCmd{File: path + "2", Days: &days}); status != 2 || !strings.HasPrefix(errors, "heed: --days: write a number from 1 to 36500") {
			t.Errorf("%d days: %d %s", days, status, errors)
		}
	}
	if _, errors, status := run(t, &NewCmd{File: filepath.Join(path+"-none", "news.key")}); status != 2 || !strings.Contains(errors, "\nName a file in a directory that exists") {
		t.Errorf("no directory: %d %s", status, errors)
	}
	if _, errors, status := run(t, &ShowCmd{File: path + "2"}); status != 2 || !strings.HasSuffix(errors, "; make one with: heed identity new "+path+"2\n") {
		t.Errorf("show without a key: %d %s", status, errors)
	}
	secret := strings.Split(strings.Split(before, `"d":"`)[1], `"`)[0]
	out, errors, status := run(t, &ShowCmd{File: path})
	if status != 0 || !strings.Contains(out, "thumbprint  "+k.Thumbprint+"\n") || !strings.Contains(out, "end         "+k.NotAfter.Format(time.RFC3339)) || strings.Contains(out+errors, secret) {
		t.Errorf("show: %d\n%s%s", status, out, errors)
	}
}

// newsSettings returns settings with a client that is signed, and others.
func newsSettings(t *testing.T, dir, more string) string {
	t.Helper()
	return testkit.Write(t, filepath.Join(dir, "proxy.toml"), `
contact = "bots@news.example"
[pacing]
min_delay = "2s"
[[client]]
name = "news"
from = ["192.0.2.7"]
agent = ["NewsBot"]
send_user_agent = "NewsBot/2.1 (+https://bots.test/news/robot.html)"
purpose = ["search", "archive"]
sign = { key = "file:news.key", agent = "https://bots.test/news/keys.json" }
`+more)
}

// What is published is what the settings say, and a verifier finds it valid as nginx serves it:
// directory, header fields, card and a request signed with the key.
func TestPublish_AVerifierFindsItValid(t *testing.T) {
	t.Parallel()
	dir, www := t.TempDir(), t.TempDir()
	key, next := made(t, filepath.Join(dir, "news.key"), 0), made(t, filepath.Join(dir, "next.key"), 400)
	settings := config.FileFlags{Config: newsSettings(t, dir, "")}
	out, errors, status := run(t, &PublishCmd{FileFlags: settings, Also: []string{filepath.Join(dir, "next.key")}, Days: 28, Trigger: "crawler", Dir: www})
	if status != 0 || strings.Count(out, "\n") != 6 || strings.Count(errors, "\n") != 2 || !strings.Contains(errors, `sign_form = "string"`) {
		t.Fatalf("%d\n%s%s", status, out, errors)
	}
	served := testkit.Site{Name: "bots.test", Files: map[string]string{}, Config: testkit.Read(t, filepath.Join(www, "server-config/nginx.conf"))}
	for _, path := range []string{"/news/keys.json", "/news/card.json", "/news/robot.html"} {
		served.Files[path] = testkit.Read(t, filepath.Join(www, path))
		must.Lack(t, served.Files[path], `"d":`, "%s has a private key", path)
	}
	origin := testkit.NewOrigin(t, served)
	reach := config.FileFlags{Config: testkit.Write(t, filepath.Join(dir, "reach.toml"), origin.Config(""))}
	for _, at := range []string{"https://bots.test/news/keys.json", "https://bots.test/news/card.json"} {
		out, errors, status := run(t, &VerifyCmd{FileFlags: reach, Target: at})
		for _, want := range []string{"key         " + key.Thumbprint, "key         " + next.Thumbprint + ", until ", "it signs the directory until "} {
			must.Contain(t, out, want, at)
		}
		must.True(t, status == 0 && errors == "", "%s: %d\n%s%s", at, status, out, errors)
	}
	out, _, status = run(t, &VerifyCmd{FileFlags: reach, Target: "https://bots.test/news/keys.json", At: moment.AddDate(0, 0, 29).UTC().Format(time.RFC3339)})
	must.True(t, status == 1 && strings.Contains(out, "not valid"), "after the signature has ended: %d\n%s", status, out)
	out, _, status = run(t, &VerifyCmd{FileFlags: reach, Target: "https://bots.test/none"})
	must.True(t, status == 2, "a page that is not there: %d %s", status, out)
	signed := testkit.Write(t, filepath.Join(dir, "request.txt"), signedRequest(t, key, moment))
	if out, errors, status := run(t, &VerifyCmd{FileFlags: reach, Target: signed, Base: true}); status != 0 || !strings.Contains(out, "outcome     verified\n") || !strings.Contains(out, `base        "@authority": site.test`) {
		t.Errorf("a request: %d\n%s%s", status, out, errors)
	}
}

// signedRequest returns a request as it is sent.
func signedRequest(t *testing.T, key *passport.Key, at time.Time) string {
	t.Helper()
	s := must.Get(passport.NewSigner(key, "https://bots.test/news/keys.json"))(t)
	h := http.Header{"User-Agent": {"NewsBot/2.1"}}
	s.Sign(h, &passport.Request{Method: "GET", Scheme: "https", Authority: "site.test", Target: "/a?b=c"}, passport.Dictionary, at)
	text := "GET /a?b=c HTTP/1.1\r\nHost: site.test\r\n"
	for name, lines := range h {
		text += name + ": " + lines[0] + "\r\n"
	}
	return text + "\r\n"
}

func TestVerify_OfARequestWithoutTheNetwork(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	key, other := made(t, filepath.Join(dir, "news.key"), 0), made(t, filepath.Join(dir, "other.key"), 0)
	keys := testkit.Write(t, filepath.Join(dir, "keys.json"), `{"keys":[`+string(key.JWK())+`]}`)
	wrong := testkit.Write(t, filepath.Join(dir, "wrong.json"), `{"keys":[`+string(other.JWK())+`]}`)
	then := moment.Add(-time.Hour)
	text := signedRequest(t, key, then)
	at := then.Add(time.Second).UTC().Format(time.RFC3339)
	for name, c := range map[string]struct {
		text, keys, at string
		http           bool
		status         int
		want           string
	}{
		"valid":           {text, keys, at, false, 0, "outcome     verified\n"},
		"without its end": {strings.TrimSpace(text), keys, at, false, 0, "outcome     verified\n"},
		"LF alone":        {strings.ReplaceAll(text, "\r", ""), keys, at, false, 0, "outcome     verified\n"},
		"too late":        {text, keys, "", false, 1, "invalid: the signature has expired"},
		"another path":    {strings.Replace(text, "/a?", "/b?", 1), keys, at, false, 1, "invalid: the signature is not that of this message"},
		"another host":    {strings.Replace(text, "site.test", "evil.test", 1), keys, at, false, 1, "invalid"},
		"another key":     {text, wrong, at, false, 1, "unverified: the directory has no key"},
		"unsigned":        {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", keys, at, false, 2, ""},
		"no request":      {"hello", keys, at, false, 2, ""},
		"half":            {strings.Replace(text, "Signature-Agent", "Signature-Agen", 1), keys, at, false, 1, "invalid: Signature-Agent does not have the URL"},
	} {
		path := testkit.Write(t, filepath.Join(dir, strings.ReplaceAll(name, " ", "")), c.text)
		out, errors, status := run(t, &VerifyCmd{Keys: c.keys, At: c.at, HTTP: c.http, Target: path})
		must.True(t, status == c.status && strings.Contains(out, c.want), "%s: %d\n%s%s", name, status, out, errors)
	}
}

// A file that is no request is named, and nothing of it is printed: it may be a private key.
func TestVerify_PrintsNothingOfAFileThatIsNoRequest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "news.key")
	key := made(t, path, 0)
	text := testkit.Read(t, path)
	for _, c := range []struct{ text, want string }{
		{text, " contains a private key, and no request\nPrint the key with heed identity show "},
		{text + text, " does not contain the head of a request"},
		{text[:len(text)/2], " does not contain the head of a request"},
		{"GET / HTTP/1.1\n" + text, " does not contain the head of a request"},
		{`{"keys":[` + string(key.JWK()) + `]}`, " contains a directory of keys, and no request\nVerify the directory at its URL, or a request in a file with --keys "},
		{"hello\n", " does not contain the head of a request, as HTTP/1 sends it\nIt begins with a line such as GET /page HTTP/1.1"},
	} {
		path := testkit.Write(t, filepath.Join(dir, "file"), c.text)
		out, errors, status := run(t, &VerifyCmd{Target: path})
		if status != 2 || out != "" || !strings.HasPrefix(errors, "heed: "+path+c.want) || strings.Contains(errors, "kty") || strings.Contains(errors, "hello") {
			t.Errorf("%q: %d %s%s", c.text, status, out, errors)
		}
	}
	for _, target := range []string{"http://bots.example/keys.json", "bots.example/keys.json", dir} {
		_, errors, status := run(t, &VerifyCmd{Target: target})
		must.True(t, status == 2 && strings.Contains(errors, "\nWrite the URL out, such as https://bots.example/news/keys.json"),
			"%s: %d %s", target, status, errors)
	}
}

// The card says nothing that the settings do not.
func TestPublish_TheCardIsTrue(t *testing.T) {
	t.Parallel()
	card := func(more string, c PublishCmd) (card map[string]any, page, errors string) {
		t.Helper()
		dir := t.TempDir()
		made(t, filepath.Join(dir, "news.key"), 0)
		made(t, filepath.Join(dir, "heed.key"), 0)
		c.Config, c.Dir, c.Days, c.Trigger = newsSettings(t, dir, more), filepath.Join(dir, "www"), 28, "crawler"
		out, errors, status := run(t, &c)
		must.Need(t, status == 0, "%d\n%s%s", status, out, errors)
		base := filepath.Join(dir, "www", "news")
		if c.Own {
			base = filepath.Join(dir, "www")
		}
		must.OK(t, json.Unmarshal([]byte(testkit.Read(t, filepath.Join(base, "card.json"))), &card))
		return card, testkit.Read(t, filepath.Join(base, "robot.html")), errors
	}
	got, page, _ := card("", PublishCmd{})
	robot := got["web_bot_auth"].(map[string]any)
	for name, c := range map[string]struct{ got, want any }{
		"client_id": {got["client_id"], "https://bots.test/news/card.json"}, "client_name": {got["client_name"], "NewsBot"}, "client_uri": {got["client_uri"], "https://bots.test/news/robot.html"},
		"contacts": {got["contacts"], []any{"mailto:bots@news.example"}}, "jwks_uri": {got["jwks_uri"], "https://bots.test/news/keys.json"},
		"expected-user-agent": {robot["expected-user-agent"], "NewsBot/2.1 (+https://bots.test/news/robot.html)"}, "rfc9309-product-token": {robot["rfc9309-product-token"], "NewsBot"},
		"rfc9309-compliance": {robot["rfc9309-compliance"], []any{"User-Agent", "Allow", "Disallow", "Crawl-delay", "Content-Signal", "Content-Usage"}},
		"trigger":            {robot["trigger"], "crawler"}, "purpose": {robot["purpose"], "search, archive"}, "rate-expectation": {robot["rate-expectation"], "at most one request every 2s to one site"},
	} {
		must.Equal(t, fmt.Sprint(c.got), fmt.Sprint(c.want), name)
	}
	must.True(t, strings.Contains(page, "User-agent: NewsBot\n") && strings.Contains(page, "obeys robots.txt"), "%s", page)
	for _, observing := range []string{"mode = \"observe\"\n", "[https]\nmode = \"host-only\"\n", "[[host]]\nmatch = [\"a.test\"]\nmode = \"observe\"\n"} {
		got, page, errors := card(observing, PublishCmd{})
		if _, says := got["web_bot_auth"].(map[string]any)["rfc9309-compliance"]; says || strings.Contains(page, "obeys robots.txt") || !strings.Contains(errors, "does not say that the robot obeys") {
			t.Errorf("%q: %v\n%s", observing, got, errors)
		}
	}
	got, _, _ = card("[robots]\nsign = { key = \"file:heed.key\", agent = \"https://bots.test/.well-known/http-message-signatures-directory\" }\n", PublishCmd{Own: true})
	if got["client_id"] != "https://bots.test/card.json" || got["web_bot_auth"].(map[string]any)["rfc9309-product-token"] != "heed" {
		t.Errorf("heed's own: %v", got)
	}
}

func TestPublish_RefusesWhatItCannotChoose(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	made(t, filepath.Join(dir, "news.key"), 0)
	const second = "[[client]]\nname = \"two\"\nsign = { key = \"file:news.key\", agent = \"https://bots.test/\" }\n"
	for want, c := range map[string]struct {
		more string
		cmd  PublishCmd
	}{
		"several clients have a key: news, two": {second, PublishCmd{}},
		"names no file":                         {second, PublishCmd{Client: "two"}},
		"\nThose with sign are news, two\n":     {second, PublishCmd{Client: "none"}},
		"[robots] has no sign\nAdd it: sign = ": {"", PublishCmd{Own: true}},
		"name two keys":                         {"", PublishCmd{Own: true, Client: "news"}},
		"the key cannot be read":                {"", PublishCmd{Also: []string{filepath.Join(dir, "none")}}},
		"write a number from 1 to 366":          {"", PublishCmd{Days: 400}},
	} {
		c.cmd.Config, c.cmd.Dir = newsSettings(t, dir, c.more), filepath.Join(dir, "www")
		if c.cmd.Days == 0 {
			c.cmd.Days = 28
		}
		out, errors, status := run(t, &c.cmd)
		must.True(t, status == 2 && strings.Contains(errors, want), "%s: %d\n%s%s", want, status, out, errors)
	}
	_, err := os.Stat(filepath.Join(dir, "www"))
	must.True(t, err != nil, "something was written")
	none := testkit.Write(t, filepath.Join(dir, "none.toml"), "[[client]]\nname = \"news\"\nfrom = [\"127.0.0.1\"]\n")
	c := PublishCmd{Dir: dir, Days: 28}
	c.Config = none
	if _, errors, status := run(t, &c); status != 2 || !strings.HasPrefix(errors, "heed: no [[client]] of "+none+" has sign\nAdd sign to") {
		t.Errorf("no sign: %d %s", status, errors)
	}
	c.Config, c.Dir = newsSettings(t, dir, ""), filepath.Join(none, "www")
	if _, errors, status := run(t, &c); status != 2 || !strings.Contains(errors, "\nName a directory that you may write to") {
		t.Errorf("no directory: %d %s", status, errors)
	}
}
