package fleet

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"heed/internal/pace"
)

// errNonsense is the error of a reply that no script of heed returns: the server is not a
// Redis server, or is hostile.
var errNonsense = errors.New("the store answered nonsense")

// check returns the error of a reply to s; errNonsense when s cannot return it.
func (s *script) check(reply *redis.Cmd) error {
	value, err := reply.Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return err
	}
	if !s.shape(value) {
		return fmt.Errorf("%w: %.60q to a script", errNonsense, fmt.Sprint(value))
	}
	return nil
}

// isFlag accepts 1, done, and 0, not done.
func isFlag(reply any) bool { return reply == int64(0) || reply == int64(1) }

// isText accepts a text.
func isText(reply any) bool {
	_, ok := reply.(string)
	return ok
}

// isInts accepts n numbers from 0 on, and the nonce behind them.
func isInts(n int) func(any) bool {
	return func(reply any) bool {
		all, ok := reply.([]any)
		return ok && len(all) == n+1 && !slices.ContainsFunc(all, func(e any) bool {
			i, ok := e.(int64)
			return !ok || i < 0
		})
	}
}

// isEntry accepts the replies of newerScript: nothing, or version, record and snapshot.
func isEntry(reply any) bool {
	if reply == nil {
		return true
	}
	all, ok := reply.([]any)
	if !ok || len(all) != 3 || !isText(all[0]) || !isText(all[1]) || !isText(all[2]) {
		return false
	}
	version, err := strconv.ParseInt(all[0].(string), 10, 64)
	return err == nil && version >= -1 && version != 0
}

// isLease accepts the replies of leaseScript.
func isLease(reply any) bool {
	switch reply {
	case "ours", "look", "alone", "held":
		return true
	}
	return false
}

const (
	// creditTime is the possible difference between the waits of an honest store and those that
	// a heed calculates.
	creditTime = settleTime + grantTime + ticketGrace
	// grantCredit is that difference for a turn: the store has measured with its clock, while
	// the request was on its way, what this heed measures.
	grantCredit = 20 * time.Millisecond
)

// credible reports whether askScript can have returned reply, of five numbers, for turns whose
// last starts by this heed are given, and a pause until till. A turn that this heed would not
// grant yet is not credible, nor is a wait that no number of waiting requests explains.
func credible(reply []int64, lanes []pace.Lane, starts []time.Time, till time.Time) bool {
	now := time.Now()
	longest, next := time.Duration(0), till
	for i, lane := range lanes {
		longest = max(longest, lane.Delay)
		if at := starts[i].Add(lane.Delay); !starts[i].IsZero() && at.After(next) {
			next = at
		}
	}
	given, again, wait, pause, others := reply[0], reply[1], reply[2], reply[3], reply[4]
	if others > maxHostFields || given > 1 || pause > maxPause.Milliseconds() {
		return false
	}
	if given == 1 {
		return next.Sub(now) <= grantCredit && again == 0 && wait == 0 && pause == 0
	}
	most := max(longest, millis(pause), next.Sub(now)) + creditTime
	return again >= 1 && millis(again) <= most && wait >= again && millis(wait) <= most+time.Duration(others)*longest
}

// explain adds to an error of a server of another kind than the URL names what it means.
// cluster reports whether the URL is that of a Cluster.
func explain(err error, cluster bool) error {
	for _, e := range []struct{ prefix, hint string }{
		{"MOVED", "this is a node of a Cluster: add ?cluster=true to fleet.url"},
		{"CROSSSLOT", "this is a node of a Cluster: add ?cluster=true to fleet.url"},
		{"This instance has cluster support disabled", "this is one server, and no Cluster: name one host in fleet.url, without cluster=true"},
		{"unknown command 'evalsha'", "a Sentinel answers so: add ?master=NAME to fleet.url"},
		{"unknown command 'sentinel'", "this is no Sentinel: leave out master= in fleet.url"},
		{"WRONGTYPE", "another program wrote a key of heed's: delete it, or give heed a store of its own"},
	} {
		if redis.HasErrorPrefix(err, e.prefix) && !(cluster && e.prefix == "MOVED") {
			return fmt.Errorf("%w; %s", err, e.hint)
		}
	}
	return err
}

// ofKeys adds the keys of an operation to its error when one of them has a value of a wrong type.
func ofKeys(err error, keys []string) error {
	if err == nil || !strings.Contains(err.Error(), "WRONGTYPE") || strings.Contains(err.Error(), "("+keyPrefix) {
		return err
	}
	return fmt.Errorf("%w (%s)", err, strings.Join(keys, ", "))
}

// guard returns the error of op, or its panic as an error: the client library panics on some
// replies.
func guard(op func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%w: %v", errNonsense, v)
		}
	}()
	return op()
}
