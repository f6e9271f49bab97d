package fleet_test

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"heed/internal/pace/fleet"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

func TestHeed_ACluster(t *testing.T) {
	t.Parallel()
	nodes := testkit.NewRedisCluster(t)
	url := fmt.Sprintf("redis://%s,%s,%s", nodes[0].Addr, nodes[1].Addr, nodes[2].Addr)
	one, other := heeds(t, url)
	told := make(chan string, 100)
	other.Watch(func(tag string, _ bool) { told <- tag })
	<-told
	all := map[string]bool{}
	for i := range 30 {
		tag := fmt.Sprintf("https://site%d.test", i)
		all[tag] = true
		var v int64
		testkit.Until(t, "a policy of "+tag+" is stored", func() bool { // on a busy machine the store may count as away for a moment
			end, _ := one.Lease(t.Context(), tag, "as curl", 0)
			if end == nil {
				return false
			}
			end2, _ := other.Lease(t.Context(), tag, "as curl", 0)
			must.Need(t, end2 == nil, "two leases of %s", tag)
			v = end([]byte("record"), []byte("file"), time.Hour)
			return v != 0
		})
		testkit.Until(t, "the other heed has it", func() bool {
			w, _, file := other.Newer(t.Context(), tag, "as curl", 0)
			return w == v && string(file) == "file"
		})
		must.Equal(t, <-told, tag, "the tag heard of")
	}
	for _, n := range nodes {
		must.True(t, n.Count("dbsize") != 0, "node %s has none of them", n.Addr)
	}
	err := other.Tags(t.Context(), func(tag string) bool { delete(all, tag); return true })
	must.True(t, err == nil && len(all) == 0, "not listed: %v, %v", all, err)
	had, err := other.Drop(t.Context(), "https://site0.test")
	must.True(t, err == nil && had, "dropped: %v, %v", had, err)
}

func TestHeed_ASentinelFailover(t *testing.T) {
	t.Parallel()
	master := testkit.NewRedis(t)
	replica := testkit.NewRedis(t, "--replicaof", strings.Replace(master.Addr, ":", " ", 1))
	replica.Await("the replica follows", func() bool { return strings.Contains(replica.CLI("info", "replication"), "master_link_status:up") })
	sentinel := testkit.NewSentinel(t, master)
	sentinel.Await("the Sentinel knows the replica", func() bool {
		return strings.Contains(sentinel.CLI("sentinel", "replicas", "heeds"), replica.Addr)
	})
	store, log := open(t, "redis://"+sentinel.Addr+"/0?master=heeds")
	p := store.Policies("space")
	told := make(chan string, 100)
	p.Watch(func(tag string, _ bool) { told <- tag })
	<-told
	v := lease(t, p, "", 0)([]byte("record"), []byte("file"), time.Hour)
	replica.Await("the replica has the record", func() bool { // WAIT counts the writes of its own connection only
		return strings.Contains(replica.CLI("keys", "*:policy"), ":policy")
	})
	master.Kill()
	w, _, _ := p.Newer(t.Context(), tag, "", 0)
	must.True(t, w == 0, "the dead master answered")
	testkit.Until(t, "the replica is used", func() bool { return log.count(back) == 1 })
	shows(t, p, "", 0, v, "record", "file")
	if t.Failed() {
		t.Logf("%+v; the replica has %s", store.Health(), replica.CLI("keys", "*"))
	}
	for tag := ""; tag != "https://after.test"; tag = <-told { // told by the new master
		other, _ := open(t, "redis://"+replica.Addr)
		must.Get(other.Policies("space").Drop(t.Context(), "https://after.test"))(t)
	}
	must.Equal(t, log.count(away), 1, "times the log says that the store is away")
}

// aclLines returns the lines of the topic fleets of the manual that make a user, with a
// password in place of PASSWORD: of the store, and of a Sentinel.
func aclLines(t *testing.T, password string) (store, sentinel []string) {
	t.Helper()
	text := must.Get(os.ReadFile("../../output/manual/fleets.md"))(t)
	var lines [][]string
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "    ACL SETUSER ") {
			lines = append(lines, strings.Fields(strings.Replace(line, "PASSWORD", password, 1)))
		}
	}
	must.Need(t, len(lines) == 2, "the manual has the lines %q", lines)
	return lines[0], lines[1]
}

// uses uses all that a store is for, and reports whether it was away meanwhile.
func uses(t *testing.T, store *fleet.Store, log *book) {
	t.Helper()
	p := store.Policies("space")
	told := make(chan string, 10)
	p.Watch(func(tag string, _ bool) { told <- tag })
	testkit.Until(t, "it listens", func() bool { return len(told) > 0 })
	v := lease(t, p, "", 0)([]byte("record"), []byte("file"), time.Hour)
	shows(t, p, "", 0, v, "record", "file")
	had, err := p.Drop(t.Context(), tag)
	must.True(t, err == nil && had, "dropped: %v, %v", had, err)
	must.OK(t, p.Tags(t.Context(), func(string) bool { return true }))
	m := &member{t, store.Lanes(), tag, "ticket"}
	m.take(of("group"))
	m.start(of("group"))
	must.OK(t, m.lanes.Release(t.Context(), tag))
	testkit.Until(t, "it is counted", func() bool { return m.lanes.Membership().Heeds == 1 })
	must.True(t, log.count(away)+log.count(nodeAway) == 0, "health %+v\n%s", store.Health(), log.text.String())
}

// The rights that the topic fleets of the manual lists are enough, and no more than heed
// can do without: not even the default user is left.
func TestHeed_AUserOfFewRights(t *testing.T) {
	t.Parallel()
	acl, _ := aclLines(t, "pass@:/word")
	server := testkit.NewRedis(t)
	server.CLI(acl...)
	server.CLI("acl", "setuser", "default", "off")
	store, log := open(t, "redis://heed:pass%40%3A%2Fword@"+server.Addr)
	uses(t, store, log)
	wrong, _ := open(t, "redis://heed:guess@"+server.Addr)
	a := wrong.Lanes().Ask(t.Context(), tag, "ticket", of("group"))
	must.True(t, !a.Now && a.Unreached == server.Addr, "with a wrong password: %+v", a)
	testkit.Until(t, "a wrong password is reported", func() bool { return strings.Contains(wrong.Health().Why, "WRONGPASS") })
}

func TestHeed_AUserOfFewRightsOfACluster(t *testing.T) {
	t.Parallel()
	acl, _ := aclLines(t, "word")
	nodes := testkit.NewRedisCluster(t)
	for _, n := range nodes {
		n.CLI(acl...)
		n.CLI("acl", "setuser", "default", "off")
	}
	url := "redis://heed:word@" + nodes[1].Addr + "?cluster=true"
	store, log := open(t, url)
	uses(t, store, log)
	must.OK(t, fleet.Try(t.Context(), fleet.Options{URL: url}))
}

func TestHeed_AUserOfFewRightsOfASentinel(t *testing.T) {
	t.Parallel()
	acl, aclSentinel := aclLines(t, "word")
	server := testkit.NewRedis(t)
	server.CLI(acl...)
	sentinel := testkit.NewSentinel(t, server)
	sentinel.CLI(aclSentinel...)
	sentinel.CLI("acl", "setuser", "default", "off")
	store, log := open(t, "redis://heed:word@"+sentinel.Addr+"?master=heeds&sentinel_user=heed&sentinel_password=word")
	uses(t, store, log)
}

// When the store's user lacks a right that turns need, no turn is given; heed logs once
// which right, and the status shows it; heed does not log again and again that the store
// is back.
func TestHeed_ARightThatIsMissingIsNamed(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	server.CLI("acl", "setuser", "heed", "on", ">word", "~heed:*", "&heed:*", "+@all", "-info")
	store, log := open(t, "redis://heed:word@"+server.Addr)
	m := &member{t, store.Lanes(), tag, "ticket"}
	for range 3 {
		a := m.ask(of("group"))
		must.True(t, !a.Now && a.Unreached != "", "%+v", a)
	}
	if h := store.Health(); !h.Away || h.Outages != 1 || !strings.Contains(h.Why, "needs the right +info") || log.count(back) > 0 {
		t.Errorf("health %+v\n%s", h, log.text.String())
	}
}

// A URL that names a server of another kind, or a master that no Sentinel has, is
// explained.
func TestHeed_AServerOfAnotherKindIsExplained(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	sentinel, node := testkit.NewSentinel(t, server), testkit.NewRedisCluster(t)[0]
	elsewhere := 0 // a site whose keys are on another node
	for node.Has(fmt.Sprintf("heed:1:{https://site%d.test}:turns", elsewhere)) {
		elsewhere++
	}
	for url, want := range map[string]string{
		"redis://" + node.Addr:                      "add ?cluster=true",
		"redis://" + server.Addr + "?cluster=true":  "no Cluster",
		"redis://" + sentinel.Addr:                  "add ?master=NAME",
		"redis://" + server.Addr + "?master=heeds":  "no Sentinel",
		"redis://" + sentinel.Addr + "?master=hedd": `no Sentinel has a master "hedd": ` + sentinel.Addr + " watches none of this name",
	} {
		s, log := open(t, url)
		lanes := s.Lanes()
		testkit.Until(t, want+" is said of "+url, func() bool {
			lanes.Ask(t.Context(), fmt.Sprintf("https://site%d.test", elsewhere), "ticket", of("group"))
			return log.count(strings.ReplaceAll(want, `"`, `\"`)) > 0
		})
	}
}

// New connections show the password, and the certificate, that Renew has set.
func TestHeed_APasswordIsRotated(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	server.CLI("acl", "setuser", "heed", "on", ">one", "~*", "&*", "+@all")
	s, log := open(t, "redis://heed:one@"+server.Addr)
	lease(t, s.Policies("space"), "", 0)
	server.CLI("acl", "setuser", "heed", "resetpass", ">two")
	server.CLI("client", "kill", "user", "heed")
	testkit.Until(t, "the old password is refused", func() bool {
		s.Policies("space").Newer(t.Context(), tag, "", 0)
		return log.count("WRONGPASS") > 0
	})
	for _, url := range []string{"redis://heed:two@other.test", "redis://heed:two@" + server.Addr + "/1", "rediss://heed:two@" + server.Addr, "redis://heed:two@" + server.Addr + "?cluster=true"} {
		_, err := s.Renew(fleet.Options{URL: url})
		must.True(t, err == fleet.ErrOtherStore, "%s: %v", url, err)
	}
	use := must.Get(s.Renew(fleet.Options{URL: "redis://heed:two@" + server.Addr}))(t)
	use()
	testkit.Until(t, "the store is back", func() bool { return !s.Health().Away })
}

// tlsStore starts a store behind TLS. asks is "yes" when it wants a certificate of its
// clients, such as the one in cert and key, and "no" otherwise.
func tlsStore(t *testing.T, asks string) (authority *testkit.CA, cert, key, port string) {
	authority = testkit.NewCA(t)
	cert, key = authority.Leaf(t, "localhost")
	_, port, _ = strings.Cut(testkit.FreeAddr(t), ":")
	testkit.NewRedis(t, "--tls-port", port, "--tls-auth-clients", asks,
		"--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", authority.File)
	return authority, cert, key, port
}

func TestHeed_AStoreThatAsksForACertificate(t *testing.T) {
	t.Parallel()
	authority, cert, key, port := tlsStore(t, "yes")
	own := must.Get(tls.LoadX509KeyPair(cert, key))(t)
	log := &book{}
	options := fleet.Options{URL: "rediss://localhost:" + port, RootCAs: authority.Pool(), Log: slog.New(slog.NewTextHandler(log, nil))}
	s := must.Get(fleet.Open(options))(t)
	t.Cleanup(func() { s.Close() })
	// In TLS 1.3 the refusal comes after the handshake: what is read of it depends on who is faster.
	testkit.Until(t, "it is refused without one", func() bool { return s.Health().Away })
	options.Certificate = &own
	use := must.Get(s.Renew(options))(t)
	use()
	testkit.Until(t, "the store is back", func() bool { return !s.Health().Away })
	lease(t, s.Policies("space"), "", 0)
}

func TestHeed_AStoreBehindTLS(t *testing.T) {
	t.Parallel()
	authority, _, _, port := tlsStore(t, "no")
	url := "rediss://localhost:" + port
	log := &book{}
	store := must.Get(fleet.Open(fleet.Options{URL: url, RootCAs: authority.Pool(), Log: slog.New(slog.NewTextHandler(log, nil))}))(t)
	t.Cleanup(func() { store.Close() })
	p := store.Policies("space")
	v := lease(t, p, "", 0)([]byte("record"), []byte("file"), time.Hour)
	shows(t, p, "", 0, v, "record", "file")

	stranger, _ := open(t, url)
	testkit.Until(t, "an untrusted certificate is reported", func() bool {
		return strings.Contains(stranger.Health().Why, "certificate signed by unknown authority")
	})
}
