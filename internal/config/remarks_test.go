package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heed/internal/config"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// remarks returns the remarks on the settings in text, as "line key".
func remarks(t *testing.T, text string) (short []string, all []config.Finding) {
	t.Helper()
	c := must.Get(config.Load(testkit.Write(t, filepath.Join(t.TempDir(), "proxy.toml"), text), testkit.BuiltIn(t)))(t)
	all = config.Remarks(c)
	for _, f := range all {
		short = append(short, fmt.Sprint(f.Line, " ", f.Key))
		must.True(t, f.File == c.File && strings.Contains(f.Text, "; "), "a remark without file or advice: %+v", f)
	}
	return short, all
}

// Each case has settings that cannot be meant, with the place of the remark, and settings
// like them that can.
func TestWhatCannotBeMeantHasARemark(t *testing.T) {
	dir := t.TempDir()
	users := testkit.Write(t, filepath.Join(dir, "users"), "alice:$2y$05$c4WoMPo3SXsafkva.HHa6uXQZWr7oboPiC2bT/r7q1BB8I2s0BRqC\n")
	must.OK(t, os.Chmod(users, 0o600))
	open := testkit.Write(t, filepath.Join(dir, "open.txt"), "")
	must.OK(t, os.Chmod(open, 0o666))
	robots := testkit.Write(t, filepath.Join(dir, "robots.txt"), "")
	for _, c := range []struct{ name, text, want, fine string }{
		{"a file that everyone can change", "[[host]]\nmatch = [\"a.test\"]\nrobots_file = \"" + open + "\"\nreason = \"x\"\n", "0 host.robots_file", "[[host]]\nmatch = [\"a.test\"]\nrobots_file = \"" + robots + "\"\nreason = \"x\"\n"},
		{"everything tunnelled", "[https]\nmode = \"tunnel\"\n", "2 https.mode", "[https]\nmode = \"host-only\"\n"},
		{"record in no directory", "[audit]\nfile = \"" + dir + "/none/a.db\"\n", "2 audit.file", "[audit]\nfile = \"" + dir + "/a.db\"\n"},
		{"policies in no directory", "[cache]\nfile = \"none/a.db\"\n", "2 cache.file", "[cache]\nfile = \"a.db\"\n"},
		{"a file where a directory should be", "[cache]\nfile = \"" + users + "/a.db\"\n", "2 cache.file", ""},
		{"record switched off", "[audit]\nfile = \"a.db\"\nenabled = false\n", "2 audit.file", "[audit]\nenabled = false\n"},
		{"decisions nowhere", "[audit]\nenabled = false\n[log]\nlevel = \"warn\"\n", "4 log.level", "[log]\nlevel = \"warn\"\n"},
		{"store's CA without a store", "[fleet]\nca_file = \"ca.pem\"\n", "2 fleet.ca_file", "[fleet]\nurl = \"rediss://store.test\"\nca_file = \"ca.pem\"\n"},
		{"CA for an unencrypted store", "[fleet]\nurl = \"redis://store.test\"\nca_file = \"ca.pem\"\n", "3 fleet.ca_file", "[fleet]\nurl = \"env:STORE\"\nca_file = \"ca.pem\"\n"},
		{
			"a key for two robots", "[robots]\nsign = { key = \"file:h\", agent = \"https://b.test/\" }\n[[client]]\nname = \"a\"\nuser_agent = \"a\"\nsign = { key = \"file:a\", agent = \"https://b.test/\" }\n[[client]]\nname = \"b\"\nuser_agent = \"b\"\nagent = [\"B\"]\nsign = { key = \"file:h\", agent = \"https://b.test/\" }\n", "11 client.sign",
			"[[client]]\nname = \"a\"\nuser_agent = \"a\"\nsign = { key = \"file:a\", agent = \"https://b.test/\" }\n[[client]]\nname = \"b\"\nuser_agent = \"b\"\nsign = { key = \"file:a\", agent = \"https://b.test/\" }\n",
		},
		{"a name of its own that it also obeys", "[[client]]\nname = \"a\"\nuser_agent = \"a\"\nagent = [\"B\"]\nalso_obey = [\"CCBot\", \"b\"]\n", "5 client.also_obey", "[[client]]\nname = \"a\"\nuser_agent = \"b\"\nalso_obey = [\"b\"]\n"},
		{"user without users", "[[client]]\nname = \"a\"\nuser = \"alice\"\n", "3 client.user", "[access]\nusers = \"" + users + "\"\n[[client]]\nname = \"a\"\nuser = \"alice\"\n"},
		{
			"client behind a wider one", "[[client]]\nname = \"all\"\nfrom = [\"10.0.0.0/8\"]\n[[client]]\nname = \"bot\"\nfrom = [\"10.1.0.0/16\"]\nuser_agent = \"News*\"\n", "5 client.name",
			"[[client]]\nname = \"bot\"\nfrom = [\"10.1.0.0/16\"]\nuser_agent = \"News*\"\n[[client]]\nname = \"all\"\nfrom = [\"10.0.0.0/8\"]\n",
		},
		{
			"client outside of the networks", "[access]\nclients = [\"192.0.2.0/24\"]\n[[client]]\nname = \"a\"\nfrom = [\"10.0.0.7\"]\n", "5 client.from",
			"[access]\nclients = [\"10.0.0.0/24\"]\n[[client]]\nname = \"a\"\nfrom = [\"10.0.0.0/8\"]\n",
		},
		{
			"destination allowed and refused", "[access]\nallow_to = [\"a.test\",\n\"10.1.0.0/16:443\"]\nrefuse_to = [\"10.0.0.0/8\"]\n", "3 access.allow_to",
			"[access]\nallow_to = [\"10.0.0.0/8\"]\nrefuse_to = [\"10.1.0.0/16\"]\n",
		},
		{
			"the whole internet", "listen = \"0.0.0.0:3128\"\n[access]\nclients = [\"0.0.0.0/0\"]\n", "3 access.clients",
			"listen = \"0.0.0.0:3128\"\n[access]\nclients = [\"0.0.0.0/0\"]\nusers = \"" + users + "\"\n",
		},
		{"networks on loopback", "", "", "listen = \"127.0.0.1:3128\"\n[access]\nclients = [\"0.0.0.0/0\"]\n"},
		{
			"host behind a wider one", "[[host]]\nmatch = [\"*.test\", \"b.example\"]\nhttps = \"host-only\"\nmode = \"observe\"\n[[host]]\nmatch = [\"a.test\", \"b.example:8443\"]\nhttps = \"tunnel\"\nports = [443]\n", "7 host.https",
			"[[host]]\nmatch = [\"*.test\"]\nhttps = \"host-only\"\n[[host]]\nmatch = [\"a.test\", \"test\"]\nhttps = \"tunnel\"\n",
		},
		{
			"host behind two others", "[[host]]\nmatch = [\"a.test\"]\nupstream = \"direct\"\n[[host]]\nmatch = [\"b.test\"]\nupstream = \"direct\"\n[[host]]\nmatch = [\"a.test\", \"b.test\"]\nupstream = \"http://p.test:1\"\n", "9 host.upstream",
			"[[host]]\nmatch = [\"a.test\"]\nupstream = \"direct\"\n[[host]]\nmatch = [\"a.test:81\"]\nmode = \"observe\"\n",
		},
		{
			"exception that is forbidden", "[[host]]\nmatch = [\"a.test\"]\nallow = [\"/x\"]\nreason = \"mail\"\n[[host]]\nmatch = [\"*\"]\nnever_allow = true\n", "3 host.allow",
			"[[host]]\nmatch = [\"*\"]\nrefuse = [\"/x\"]\nreason = \"mail\"\n[[host]]\nmatch = [\"a.test\"]\nnever_allow = true\n",
		},
		{
			"service that is crawled", "[[host]]\nmatch = [\"a.test\"]\ncrawl = false\nreason = \"api\"\n[[host]]\nmatch = [\"a.test\"]\nnever_allow = true\n", "3 host.crawl",
			"[[host]]\nmatch = [\"*\"]\ncrawl = false\nreason = \"api\"\n[[host]]\nmatch = [\"a.test\"]\nnever_allow = true\n",
		},
		{
			"requests without Via through another proxy", "[upstream]\nproxy = \"http://p.test:1\"\nvia = false\n", "3 upstream.via",
			"[upstream]\nvia = false\n[[host]]\nmatch = [\"a.test\"]\nupstream = \"http://p.test:1\"\nvia = true\n",
		},
		{
			"requests to a host without Via through another proxy", "[upstream]\nproxy = \"http://p.test:1\"\n[[host]]\nmatch = [\"a.test\"]\nvia = false\n", "5 host.via",
			"[upstream]\nproxy = \"http://p.test:1\"\n[[host]]\nmatch = [\"a.test\"]\nupstream = \"direct\"\nvia = false\n",
		},
		{"a host's proxy without Via", "[upstream]\nvia = false\n[[host]]\nmatch = [\"a.test\"]\nupstream = \"http://p.test:1\"\n", "5 host.upstream", ""},
		{
			"Via behind a wider host", "[[host]]\nmatch = [\"*.test\"]\nvia = true\n[[host]]\nmatch = [\"a.test\"]\nvia = false\n", "6 host.via",
			"[[host]]\nmatch = [\"a.test\"]\nvia = false\n[[host]]\nmatch = [\"*.test\"]\nvia = true\n",
		},
		{"host without settings", "[[host]]\nmatch = [\"a.test\"]\nreason = \"x\"\n", "2 host.match", "[[host]]\nmatch = [\"a.test\"]\nrobots_file = \"" + robots + "\"\nreason = \"x\"\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.text != "" {
				short, all := remarks(t, c.text)
				must.True(t, len(short) == 1 && short[0] == c.want, "want %q, got %q: %v", c.want, short, all)
			}
			short, all := remarks(t, c.fine)
			must.True(t, len(short) == 0, "of what can be meant: %v", all)
		})
	}
}

// Many entries, and keys of many parts, cost what they are worth: looking at them is not
// quadratic, which ten thousand would show by minutes.
func TestManyEntriesCostLittle(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&text, "[[host]]\nmatch = [\"h%d.test\"]\nhttps = \"tunnel\"\n", i)
	}
	text.WriteString("[[host]]\nmatch = [\"h7.test\"]\nhttps = \"refuse\"\n")
	path := testkit.Write(t, filepath.Join(t.TempDir(), "proxy.toml"), text.String())
	c := must.Get(config.Load(path, testkit.BuiltIn(t)))(t)
	if all := config.Remarks(c); len(all) != 1 || all[0].Line != 30_003 || !strings.Contains(all[0].Text, "an earlier [[host]], of h7.test,") {
		t.Errorf("%v", all)
	}
	testkit.Write(t, path, strings.Repeat("a.", 50_000)+"a = 1\n")
	must.Fail(t, must.Err(config.Load(path, testkit.BuiltIn(t))), `unknown key "a"`)
}

func TestTheBuiltInSettingsHaveNoRemark(t *testing.T) {
	c := must.Get(config.BuiltIn(testkit.BuiltIn(t)))(t)
	must.Same(t, config.Remarks(c), nil)
}

func TestRemarksAreInTheOrderOfTheFile(t *testing.T) {
	short, _ := remarks(t, "[[host]]\nmatch = [\"a.test\"]\n[[client]]\nname = \"a\"\nuser = \"b\"\n[https]\nmode = \"tunnel\"\n[audit]\nfile = \"none/a.db\"\n")
	want := "2 host.match, 5 client.user, 7 https.mode, 9 audit.file"
	must.True(t, strings.Join(short, ", ") == want, "%q, want %q", short, want)
}
