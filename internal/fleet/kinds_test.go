package fleet_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"heed/internal/fleet"
	"heed/internal/testkit"
)

func TestHeed_ACluster(t *testing.T) {
	t.Parallel()
	nodes := testkit.NewRedisCluster(t)
	url := fmt.Sprintf("redis://%s,%s,%s", nodes[0].Addr, nodes[1].Addr, nodes[2].Addr)
	one, other := heeds(t, url)
	told := make(chan string, 100)
	other.Watch(func(tag string) { told <- tag })
	<-told
	all := map[string]bool{}
	for i := range 30 {
		tag := fmt.Sprintf("https://site%d.test", i)
		all[tag] = true
		end, _ := one.Lease(t.Context(), tag, "as curl", 0)
		if end == nil {
			t.Fatalf("no lease of %s", tag)
		}
		if end2, wait := other.Lease(t.Context(), tag, "as curl", 0); end2 != nil || wait == 0 {
			t.Errorf("two leases of %s", tag)
		}
		v := end([]byte("record"), []byte("file"), time.Hour)
		if w, _, file := other.Newer(t.Context(), tag, "as curl", 0); v == 0 || w != v || string(file) != "file" {
			t.Errorf("%s: stored as %d, seen as %d with %q", tag, v, w, file)
		}
		if got := <-told; got != tag {
			t.Errorf("told of %s, not of %s", got, tag)
		}
	}
	for _, n := range nodes {
		if n.Count("dbsize") == 0 {
			t.Errorf("node %s has none of them", n.Addr)
		}
	}
	if err := other.Tags(t.Context(), func(tag string) bool { delete(all, tag); return true }); err != nil || len(all) > 0 {
		t.Errorf("not listed: %v, %v", all, err)
	}
	if had, err := other.Drop(t.Context(), "https://site0.test"); err != nil || !had {
		t.Errorf("dropped: %v, %v", had, err)
	}
}

func TestHeed_OneHostOfAClusterIsEnough(t *testing.T) {
	t.Parallel()
	nodes := testkit.NewRedisCluster(t)
	store, _ := open(t, "redis://"+nodes[1].Addr+"?cluster=true")
	p := store.Policies("space")
	for i := range 10 {
		testkit.Until(t, fmt.Sprint("lease ", i), func() bool { // on a busy machine the store may count as away for a moment
			end, _ := p.Lease(t.Context(), fmt.Sprint("https://site", i), "", 0)
			return end != nil
		})
	}
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
	p.Watch(func(tag string) { told <- tag })
	<-told
	v := lease(t, p, "", 0)([]byte("record"), []byte("file"), time.Hour)
	replica.Await("the replica has the record", func() bool { // WAIT counts the writes of its own connection only
		return strings.Contains(replica.CLI("keys", "*:policy"), ":policy")
	})
	master.Kill()
	if w, _, _ := p.Newer(t.Context(), tag, "", 0); w != 0 {
		t.Error("the dead master answered")
	}
	testkit.Until(t, "the replica is used", func() bool { return log.count(back) == 1 })
	shows(t, p, "", 0, v, "record", "file")
	if t.Failed() {
		t.Logf("%+v; the replica has %s", store.Health(), replica.CLI("keys", "*"))
	}
	for tag := ""; tag != "https://after.test"; tag = <-told { // told by the new master
		other, _ := open(t, "redis://"+replica.Addr)
		if _, err := other.Policies("space").Drop(t.Context(), "https://after.test"); err != nil {
			t.Fatal(err)
		}
	}
	if n := log.count(away); n != 1 {
		t.Errorf("the log says %d times that the store is away", n)
	}
}

// The rights that the topic fleets of the manual lists are enough.
func TestHeed_AUserOfFewRights(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	server.CLI("acl", "setuser", "heed", "on", ">pass@:/word", "~heed:*", "&heed:*", "-@all",
		"+@connection", "+@scripting", "+@hash", "+@pubsub", "+get", "+set", "+del", "+pexpire", "+pttl", "+scan", "+time", "+info")
	server.CLI("acl", "setuser", "default", "off")
	store, log := open(t, "redis://heed:pass%40%3A%2Fword@"+server.Addr)
	p := store.Policies("space")
	told := make(chan string, 10)
	p.Watch(func(tag string) { told <- tag })
	<-told
	v := lease(t, p, "", 0)([]byte("record"), []byte("file"), time.Hour)
	shows(t, p, "", 0, v, "record", "file")
	if had, err := p.Drop(t.Context(), tag); err != nil || !had {
		t.Errorf("dropped: %v, %v", had, err)
	}
	if err := p.Tags(t.Context(), func(string) bool { return true }); err != nil {
		t.Error(err)
	}
	m := &member{t, store.Lanes(), tag, "ticket"}
	m.take(of("group"))
	m.start(of("group"))
	if err := m.turns.Release(t.Context(), tag); err != nil {
		t.Error(err)
	}
	if log.count(away) > 0 {
		t.Errorf("health %+v", store.Health())
	}
	wrong, _ := open(t, "redis://heed:guess@"+server.Addr)
	if a := wrong.Lanes().Ask(t.Context(), tag, "ticket", of("group")); a.Now || a.Unreached != server.Addr {
		t.Errorf("with a wrong password: %+v", a)
	}
	testkit.Until(t, "a wrong password is reported", func() bool { return strings.Contains(wrong.Health().Why, "WRONGPASS") })
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
		if a := m.ask(of("group")); a.Now || a.Unreached == "" {
			t.Errorf("%+v", a)
		}
	}
	if h := store.Health(); !h.Away || h.Outages != 1 || !strings.Contains(h.Why, "needs the right +info") || log.count(back) > 0 {
		t.Errorf("health %+v\n%s", h, log.text.String())
	}
}

func TestHeed_AStoreBehindTLS(t *testing.T) {
	t.Parallel()
	authority := testkit.NewCA(t)
	cert, key := authority.Leaf(t, "localhost")
	_, port, _ := strings.Cut(testkit.FreeAddr(t), ":")
	testkit.NewRedis(t, "--tls-port", port, "--tls-auth-clients", "no",
		"--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", authority.File)
	url := "rediss://localhost:" + port
	log := &book{}
	store, err := fleet.Open(fleet.Options{URL: url, RootCAs: authority.Pool(), Log: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	p := store.Policies("space")
	v := lease(t, p, "", 0)([]byte("record"), []byte("file"), time.Hour)
	shows(t, p, "", 0, v, "record", "file")

	stranger, _ := open(t, url)
	testkit.Until(t, "an untrusted certificate is reported", func() bool {
		return strings.Contains(stranger.Health().Why, "certificate signed by unknown authority")
	})
}
