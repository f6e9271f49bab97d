package audit

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"heed/internal/tools/testkit/must"
)

func newPrivacy(t testing.TB, clients Clients) *Privacy {
	t.Helper()
	return must.Get(NewPrivacy(clients, []string{"*token*", "key", "*apikey", "*password*", "sig", "*signature", "*sessionid"}, bytes.Repeat([]byte{7}, PrivacyKeySize)))(t)
}

// A value in braces is to be hidden; everything else must not change.
func TestHeed_ValuesThatMustNotBeKeptAreHiddenInEverySpellingOfTheirNames(t *testing.T) {
	p := newPrivacy(t, ClientsFull)
	for _, c := range []string{
		"/a?token={x}", "/a?token={x}&b=2", "/a?b=2&token={x}", "/a?b=2;token={x};c=3", "/a?token={x;y}", "/a?token={x;y==}&b",
		"/a?token={x}&token={y}", "/a?TOKEN={x}", "/a?tok%65n={x}", "/a?tok%2565n={x}", "/a?%74%6f%6B%65%6e={x}", "/a?tok%u0065n={x}",
		"/a?access_token={x}", "/a?accessToken={x}", "/a?api-key={x}", "/a?APIKey={x}", "/a?x-api-key={x}", "/a?user[password]={x}",
		"/a?user%5Bpassword%5D={x}", "/a?token[]={x}&token[]={y}", "/a?token[0]={x}", "/a?to+ken={x}", "/a?tok%00en={x}", "/a?.token={x}",
		"/a;jsessionid={x}", "/a;jsessionid={x}/b?c=d", "/a;v=1;token={x};w=2/b", "/key={x}/b", "/a?x=/b?token={y}&z=1", "/a?token={x/y?z=1}&w=2",
		"/a?token%3D{}x", "/a?u={https%3A%2F%2Fs.test%2F%3Ftoken%3Dx}&v=1", "/a?u={https%253A%252F%252Fs.test%252F%253Ftoken%253Dx}&v=1",
		"/a?u=https://{me:secret}@s.test/", "https://{me:p@ss}@s.test/a?key={x}#token={y}", "http://s.test/@me?b=1", "/a?u={http%3A%2F%2Fme%3Apw%40s.test%2F}",
		"/a?signature={x}&sig={y}&signed=1", "//s.test/a?token={x}", "?token={x}", "token={x}",
		"/token/a?monkey=1&keyword=b&designsig=1&a=token", "/a?token=", "/a?token=&b=1", "/a?token", "/a?b=me@site.test", "/%", "/a?%zz=%&%u12=1&=x&==", "",
	} {
		target := strings.NewReplacer("{", "", "}", "").Replace(c)
		if c == "/a?token%3D{}x" {
			c = "/a?{token%3Dx}"
		}
		want := hide(p, c)
		got, hidden := p.Redact(target)
		must.True(t, got == want && hidden == (want != target), "%s became %s, not %s (%v)", target, got, want, hidden)
		if MayBeRedacted(got, target) != hidden || MayBeRedacted(got, target+"&other=1") || MayBeRedacted(got, "/other"+target) {
			t.Errorf("%s is not told from others by %s", target, got)
		}
	}
}

// hide returns c with the text in braces hidden.
func hide(p *Privacy, c string) string {
	var out strings.Builder
	for c != "" {
		before, rest, found := strings.Cut(c, "{")
		out.WriteString(before)
		if !found {
			break
		}
		var secret string
		secret, c, _ = strings.Cut(rest, "}")
		out.WriteString(p.hash("redacted", secret))
	}
	return out.String()
}

// Equal values can be recognised, under one key alone.
// Sites take secrets in other forms than name=value, which are hidden in a query.
func TestHeed_SecretsInPairsAndInJSONAreHidden(t *testing.T) {
	t.Parallel()
	p := must.Get(NewPrivacy(ClientsFull, []string{"token", "*password*", "^code"}, make([]byte, PrivacyKeySize)))(t)
	for _, s := range []string{
		`/a?q={"token":"5ecret"}`, `/a?q={"a":"x/y?z","b":{"Password": "5ecret/1"}}&c=2`, `/a?q=%7B%22token%22%3A%225ecret%22%7D&c=2`,
		`/a?q=%257B%2522token%2522%253A%25225ecret%2522%257D`, `/a?q={\"token\":\"5ecret\"}`, `/a?{'token':'5ecret'}`, `/a?q={token:5ecret}`, `/a?q=[{"access_token":"5ecret"}]`,
		"/a?token:5ecret", "/a?b=1&user-token:5ecret&c=2", "http://h.test/a?filter=token:5ecret", "/a?q=x+token:5ecret", "/cb?code=5ecret&state=1", "/cb?x=1#code=5ecret",
	} {
		got, hidden := p.Redact(s)
		must.True(t, hidden && !strings.Contains(got, "5ecret"), "%s: %s", s, got)
	}
	for _, s := range []string{
		"/wiki/Token:5ecret", "/a?zip_code=1&country-code=2&codes=3", "http://h.test:80/a?b=http://token.test:81/", `/a?q={"tokens-left":1,"t":"token"}`, "/a?at=12:30:00", "/a?token:",
	} {
		got, hidden := p.Redact(s)
		must.True(t, !hidden, "%s: %s", s, got)
	}
}

func TestHeed_WhatIsHiddenCanBeComparedByWhoHasTheKeyAlone(t *testing.T) {
	p := newPrivacy(t, ClientsFull)
	a, _ := p.Redact("/a?token=x")
	b, _ := p.Redact("/b?c&token=x")
	must.True(t, strings.HasSuffix(b, a[len("/a?"):]), "%s and %s do not show the same value", a, b)
	other := must.Get(NewPrivacy(ClientsFull, []string{"token"}, make([]byte, PrivacyKeySize)))(t)
	c, _ := other.Redact("/a?token=x")
	must.True(t, c != a, "two keys gave the same %s", c)
}

// A client that sends nothing but secrets costs no more than their length.
func TestHeed_HostileTargetsAreHiddenAtABoundedCost(t *testing.T) {
	p := newPrivacy(t, ClientsFull)
	for _, piece := range []string{"token=a&", ";token=a/", "a=&", "%25", "%2525", "=", "a%3d&", "u://x@/", "[aB"} {
		target := "/?" + strings.Repeat(piece, 64<<10/len(piece))
		got, _ := p.Redact(target)
		n := strings.Count(got, "redacted-")
		must.True(t, n <= maxSecrets && len(got) <= len(target)+maxSecrets*30, "%s...: %d hidden, %d octets", piece, n, len(got))
	}
}

func TestHeed_ClientsAreKeptAsTheSettingsSay(t *testing.T) {
	full, truncated, hashed := newPrivacy(t, ClientsFull), newPrivacy(t, ClientsTruncated), newPrivacy(t, ClientsHashed)
	for _, c := range []struct{ at, full, network string }{
		{"192.0.2.77:4711", "192.0.2.77", "192.0.2.0/24"},
		{"[2001:db8:1:2::5]:4711", "2001:db8:1:2::5", "2001:db8:1::/48"},
		{"[::ffff:192.0.2.77]:4711", "192.0.2.77", "192.0.2.0/24"},
		{"[fe80::1%eth0]:4711", "fe80::1%eth0", "fe80::/48"},
	} {
		if client, port := full.Client(c.at); client != c.full || port != 4711 {
			t.Errorf("%s in full is %s, %d", c.at, client, port)
		}
		if client, port := truncated.Client(c.at); client != c.network || port != 0 {
			t.Errorf("%s truncated is %s, %d", c.at, client, port)
		}
		client, port := hashed.Client(c.at)
		again, _ := hashed.Client(strings.Replace(c.at, "4711", "4712", 1))
		must.True(t, strings.HasPrefix(client, "client-") && port == 0 && client == again,
			"%s hashed is %s, %d; on another port %s", c.at, client, port, again)
	}
	must.True(t, hashed.User("me") != "me" && truncated.User("me") == "me" && hashed.User("") == "",
		"names are hashed where addresses are, and nowhere else")
}

func TestHeed_APatternForNamesIsLettersDigitsAndStars(t *testing.T) {
	for _, bad := range []string{"", "*", "**", "Token", "api_key", "a b", "ü", "[a"} {
		must.True(t, CheckRedact(bad) != nil, "%q was taken", bad)
	}
	must.OK(t, CheckRedact("*oauth2*"))
}

// Whatever octets come: what is no secret stays, and a secret does not.
func FuzzRedact(f *testing.F) {
	for _, s := range []string{"/a?token=x&b=1", "/a;jsessionid=1/b", "/a?u=http%3A%2F%2Fa:b%40c", "/?%74oken=\x00", "token%3D1", "http://a:b@c/"} {
		f.Add(s)
	}
	p := newPrivacy(f, ClientsFull)
	f.Fuzz(func(t *testing.T, s string) {
		got, hidden := p.Redact(s)
		must.True(t, hidden != (got == s) || strings.Contains(s, "redacted-"), "%q became %q, hidden %v", s, got, hidden)
		if hidden && !MayBeRedacted(got, s) && !strings.Contains(s, "redacted-") {
			t.Errorf("%q is not recognised by %q", s, got)
		}
		for _, target := range []string{"/a?token=5ecret&" + s, "/a;token=5ecret/" + s, "http://5ecret@s.test/" + s} {
			got, _ := p.Redact(target)
			must.True(t, !strings.Contains(strings.Replace(got, s, "", 1), "5ecret"), "%q became %q", target, got)
		}
		got, _ = p.Redact(s + "&token=5ecret")
		must.True(t, !strings.Contains(strings.Replace(got, s, "", 1), "5ecret"), "behind %q: %q", s, got)
	})
}

// Secrets are found among octets that are no text, and these are kept.
func TestRedact_OctetsThatAreNoText(t *testing.T) {
	t.Parallel()
	p := must.Get(NewPrivacy(ClientsFull, []string{"token"}, make([]byte, PrivacyKeySize)))(t)
	for target, want := range map[string]string{
		"/\xff%zz|\"{^}?q=\xfe&token=\xc3(\x00&r=%":   "/\xff%zz|\"{^}?q=\xfe&token=HASH&r=%",
		"/caf\u00e9?\xfftoken\xff=a\xffb;c":           "/caf\u00e9?\xfftoken\xff=HASH",
		"/%?to%6Ben=100%-\xe2\x28\xa1/x;token=\xff/y": "/%?to%6Ben=HASH;token=HASH",
		"/\xff\xfe?\xff=%zz":                          "/\xff\xfe?\xff=%zz",
	} {
		got, _ := p.Redact(target)
		got = regexp.MustCompile(`redacted-[0-9a-f]{16}`).ReplaceAllString(got, "HASH")
		must.True(t, got == want, "%q is kept as %q, not %q", target, got, want)
	}
}
