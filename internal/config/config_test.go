package config

import (
	"cmp"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"heed/internal/judge/acl"
	"heed/internal/output/console"
	"heed/internal/pace"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/proxy/limit"
	"heed/rules"
)

// Every file in testdata/broken is wrong in its own way. The comment at its
// end is heed's message, word for word, with FILE for its path and DIR for its directory; -update
// rewrites it.
func TestHeed_BrokenSettingsAreNamedWithLineAndCure(t *testing.T) {
	files, err := filepath.Glob("testdata/broken/*.toml")
	must.Need(t, err == nil && len(files) >= 40, "%d broken files, %v", len(files), err)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".toml"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			must.OK(t, err)
			text, want, _ := strings.Cut(string(data), "\n#= ")
			want = strings.ReplaceAll(strings.TrimSpace(want), "\n#= ", "\n")
			broken := testkit.Write(t, filepath.Join(t.TempDir(), "proxy.toml"), text+"\n")
			_, err = Load(broken, testkit.BuiltIn(t))
			must.Need(t, err != nil, "no error")
			got := strings.ReplaceAll(err.Error(), broken, "FILE")
			got = strings.ReplaceAll(got, filepath.Dir(broken), "DIR")
			if *testkit.Update && got != want {
				testkit.Write(t, file, text+"\n#= "+strings.ReplaceAll(got, "\n", "\n#= ")+"\n")
			} else if got != want {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

// defaultLimits is [limits] as it is built in.
func defaultLimits() limit.Limits {
	return limit.Limits{
		Streams: limit.DefaultStreams, SiteConnections: 512, RefusalsPerClient: limit.DefaultRefusals, HeaderBytes: limit.DefaultHeaderBytes, URIBytes: limit.DefaultURIBytes,
		HeaderTime: limit.DefaultHeaderTime, ConnectTime: limit.DefaultConnectTime, HandshakeTime: limit.DefaultHandshakeTime,
		IdleTime: limit.DefaultIdleTime, BodyTime: limit.DefaultBodyTime, ReadTime: limit.DefaultReadTime, TunnelTime: limit.DefaultTunnelTime,
	}
}

// defaultPacing is [pacing] as it is built in.
func defaultPacing() PacingConfig {
	return PacingConfig{Settings: pace.Settings{MaxDelay: time.Hour, MaxWait: 30 * time.Second}, Share: "group", VisitTime: "observe", RetryAfter: "obey", Observed: "record", MinDelayPer: "site"}
}

func TestHeed_BuiltInSettingsAreTheDefaults(t *testing.T) {
	got := must.Get(Load("", testkit.BuiltIn(t)))(t)
	limits := defaultLimits()
	want := &Config{
		Listen: Addresses{"127.0.0.1:3128"}, ProxyProtocol: []string{},
		Profile:  "standard",
		Drain:    30 * time.Second,
		HTTPS:    HTTPSConfig{Mode: "intercept"},
		Cache:    CacheConfig{MaxBytes: 256 << 20},
		Access:   AccessConfig{Clients: []string{}, PrivateDestinations: "auto", AllowTo: []string{}, RefuseTo: []string{}},
		Pacing:   defaultPacing(),
		Limits:   limits,
		Upstream: UpstreamConfig{Resolve: map[string]string{}, ResponseHeaderTimeout: 10 * time.Minute, Via: true},
		Audit:    AuditConfig{Enabled: true, Durability: "process", OnFailure: "refuse", MaxSize: 2 << 30, Clients: "full", Redact: got.Audit.Redact}, // whose names are looked at by what they hide
		Signals:  SignalsConfig{Page: "clients", AlsoObey: acl.PurposeTokens{}},
		Admin:    AdminConfig{Hosts: []string{}},
		Log:      LogConfig{Format: "auto", Level: "info"},
	}
	must.Same(t, got, want, "built in")
}

func TestHeed_ProxyTomlHasEverySettingWithARemark(t *testing.T) {
	text := string(testkit.BuiltIn(t))
	lines := keyLines([]byte(text))
	all := strings.Split(text, "\n")
	for _, key := range keyNames(reflect.TypeFor[Config](), "") {
		if table, leaf := cutLast(key); isArray(key) || isArray(table) { // there is none by itself
			_, example, found := strings.Cut(text, "\n# [["+cmp.Or(table, key)+"]]\n")
			example, _, _ = strings.Cut(example, "\n\n")
			must.True(t, found && (table == "" || strings.Contains("\n"+example, "\n# "+leaf+" = ")),
				"%s does not stand in the example", key)
			continue
		}
		line, ok := lines[key]
		if !ok {
			t.Errorf("%s is missing", key)
			continue
		}
		_, leaf := cutLast(key)
		above := all[line-2]
		isTable := strings.HasPrefix(all[line-1], "[")
		if !isTable && !strings.HasPrefix(above, "#") && leaf != "ca_key" { // ca_key shares the remark of ca_cert
			t.Errorf("%s has no remark above it, but %q", key, above)
		}
	}
}

func TestHeed_AFileOverridesTheDefaults(t *testing.T) {
	dir := t.TempDir()
	file := testkit.Write(t, filepath.Join(dir, "my.toml"), "\ufeff"+`
listen = "[::1]:0"
profile = "strict"
[https]
ca_cert = "ca.pem"
ca_key = "/keys/ca-key.pem"
[cache]
max_bytes = "1GiB"
file = "kept.db"
[fleet]
url = "rediss://heed:secret@store.test/2"
ca_file = "store.pem"
[access]
private_destinations = "refuse"
allow_to = ["*.corp.example", "10.0.0.0/8:443"]
refuse_to = ["*:25"]
[limits]
connections = 1000
uri_bytes = "8KiB"
body_time = "30s"
[upstream]
resolve = { "Site.TEST:443" = "127.0.0.1:8443" }
response_header_timeout = "1h30m"
`)
	c := must.Get(Load(file, testkit.BuiltIn(t)))(t)
	limits := defaultLimits()
	limits.Connections, limits.URIBytes, limits.BodyTime = 1000, 8<<10, 30*time.Second
	want := Config{
		Listen: Addresses{"[::1]:0"}, ProxyProtocol: []string{}, Profile: "strict", Drain: 30 * time.Second, File: file,
		HTTPS:  HTTPSConfig{Mode: "intercept", CACert: filepath.Join(dir, "ca.pem"), CAKey: "/keys/ca-key.pem"},
		Cache:  CacheConfig{MaxBytes: 1 << 30, File: filepath.Join(dir, "kept.db")},
		Access: AccessConfig{Clients: []string{}, PrivateDestinations: "refuse", AllowTo: []string{"*.corp.example", "10.0.0.0/8:443"}, RefuseTo: []string{"*:25"}},
		Pacing: defaultPacing(),
		Limits: limits,
		Fleet:  FleetConfig{URL: "rediss://heed:secret@store.test/2", CAFile: filepath.Join(dir, "store.pem")},
		Upstream: UpstreamConfig{
			Resolve:               map[string]string{"site.test:443": "127.0.0.1:8443"},
			ResponseHeaderTimeout: 90 * time.Minute,
			Via:                   true,
		},
		Audit:   c.Audit,
		Signals: SignalsConfig{Page: "clients", AlsoObey: acl.PurposeTokens{}},
		Admin:   AdminConfig{Hosts: []string{}},
		Log:     LogConfig{Format: "auto", Level: "info"},
	}
	c.lines = nil
	must.Same(t, *c, want)
}

// A proxy.toml that others can change is used when it is named, or says what is built in:
// also in its mistakes, and after a start that found it harmless.
func TestHeed_SettingsThatOthersCanChangeAreNotFound(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the mode does not show who can write")
	}
	defaults := testkit.BuiltIn(t)
	t.Chdir(t.TempDir())
	put := func(text string) {
		testkit.Write(t, FileName, text)
		must.OK(t, os.Chmod(FileName, 0o666))
	}
	app := &console.App{Defaults: defaults}
	put("# as built in\nprofile = \"standard\"\n")
	before := must.Get((&FileFlags{}).Load(app))(t)
	for _, text := range []string{"[upstream]\nproxy = \"http://p.test:1\"\n", "no = \"such key\"\n"} {
		put(text)
		_, found := (&FileFlags{}).Load(app)
		_, again := (&FileFlags{}).Again(app, before)
		for _, err := range []error{found, again} {
			if err == nil || !strings.Contains(err.Error(), "everyone (mode 0666) can change them\nIf you trust them, name the file: --config ./proxy.toml") {
				t.Errorf("%q: %v", text, err)
			}
		}
	}
	put("profile = \"strict\"\n")
	c, err := (&FileFlags{Config: "./" + FileName}).Load(app)
	must.True(t, err == nil && c.Profile == "strict", "named: %v", err)
}

func TestHeed_HashFollowsTheSettingsAndNotTheFile(t *testing.T) {
	plain, spelledOut := settings(t, ""), settings(t, "drain = \"0h0m30s\"\n[upstream]\nproxy = \"\"")
	must.Equal(t, plain.Hash(), spelledOut.Hash(), "equal settings, different hashes")
	elsewhere, other := settings(t, `listen = "127.0.0.1:0"`), settings(t, `contact = "bot@example.org"`)
	must.True(t, plain.Hash() != elsewhere.Hash() && plain.Hash() != other.Hash(), "different settings, equal hashes")
	must.Equal(t, plain.JoinHash(), elsewhere.JoinHash(), "where a heed listens keeps a run from joining it")
	must.True(t, plain.JoinHash() != other.JoinHash(), "a run joins a heed with other settings")
}

func TestHeed_ContactsThatReachSomebody(t *testing.T) {
	for _, good := range []string{"", "https://example.org/bot", "http://example.org", "bot@example.org", "mailto:bot@example.org"} {
		must.OK(t, CheckContact(good), "%q", good)
	}
	for _, bad := range []string{"me", "ftp://example.org", "Bot <bot@example.org>", "https://", "a b@example.org", "bot@example.org\n"} {
		must.True(t, CheckContact(bad) != nil, "%q is accepted", bad)
	}
}

func TestHeed_HostsAreCanonicalAndTheFirstThatFitsComesFirst(t *testing.T) {
	c := settings(t, `
[https]
mode = "host-only"
[[host]]
match = ["WWW.Example.org.", "*.Bücher.example", "[2001:DB8::1]"]
ports = [443, 8443]
[[host]]
match = ["*:8443"]
https = "tunnel"
[[host]]
match = ["a.test"]
https = "refuse"
`)
	r := must.Get(c.Rules(time.Now))(t)
	for host, want := range map[string]acl.HTTPS{
		"www.example.org": acl.HostOnly, "a.xn--bcher-kva.example": acl.HostOnly, "[2001:db8::1]": acl.HostOnly,
		"a.test": acl.NoHTTPS, "b.test": acl.HostOnly, "a.test:8443": acl.Tunnel,
	} {
		o := must.Get(rules.ParseOrigin("https", host))(t)
		out := r.For(nil, o, time.Now())
		must.Equal(t, out.HTTPS(), want, host)
		ok, ports := out.TunnelsTo(o)
		must.True(t, host != "www.example.org" || ok && ports == "443, 8443", "tunnels go to %s", ports)
	}
	if out := strings.Join(c.Unjudged(), "\n"); strings.Count(out, "by its host alone") != 2 || strings.Count(out, "NOT JUDGED") != 1 || !strings.Contains(out, "443, 8443") {
		t.Errorf("it says %q", out)
	}
}
