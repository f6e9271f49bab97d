package fleet

import (
	"testing"
	"time"

	"heed/internal/tools/testkit/must"

	"github.com/redis/go-redis/v9"
)

func TestParts_SlotsAreThoseOfTheSpecification(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]int{ // as CLUSTER KEYSLOT of Redis 7.0 says
		"123456789": 12739, "heed:1:heeds": 14945, "heed:1:{https://site.test}:turns": 2868, "{}{a}": 13650, "{a": 10276, "a{b}{c}": 3300, "": 0,
	} {
		must.Equal(t, slotOf(key), want, "%q", key)
	}
	for _, key := range []string{"heed:1:heeds", "heed:1:{https://site.test}:turns"} {
		must.Equal(t, slotOf(besides(key, ":probe")), slotOf(key), "%s is probed elsewhere", key)
	}
}

// A slot that comes to another master is unsure for a while, and the others of that
// master are not.
func TestParts_ASlotThatMovesIsUnsure(t *testing.T) {
	t.Parallel()
	now := time.Now()
	a, b := redis.ClusterNode{ID: "a", Addr: "a.test:1"}, redis.ClusterNode{ID: "b", Addr: "b.test:1"}
	slot := func(from, to int, n redis.ClusterNode) redis.ClusterSlot {
		return redis.ClusterSlot{Start: from, End: to, Nodes: []redis.ClusterNode{n}}
	}
	var p parts
	moving, staying := "heed:1:heeds", "a{b}{c}"
	p.learn([]redis.ClusterSlot{slot(0, 9999, a), slot(10000, 16383, b), slot(-1, 5, b), slot(0, 1<<30, b), {Start: 0, End: 3}}, now)
	must.True(t, p.back(moving).IsZero() && p.of(moving).node == "b.test:1" && p.of(staying).node == "a.test:1",
		"at first: back %v, on %q and %q", p.back(moving), p.of(moving).node, p.of(staying).node)
	p.learn([]redis.ClusterSlot{slot(0, 16383, a)}, now.Add(time.Second))
	must.True(t, p.back(moving).Equal(now.Add(time.Second)) && p.back(staying).IsZero() && len(p.nodes) == 1,
		"moved: back %v, staying: %v; %d nodes", p.back(moving), p.back(staying), len(p.nodes))
	p = parts{whole: part{away: true}}
	p.learn([]redis.ClusterSlot{slot(0, 16383, a)}, now)
	must.True(t, p.back(moving).Equal(now), "after all of it was away: back %v", p.back(moving))
}
