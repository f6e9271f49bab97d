// Package fleet is what several heeds share, in a Redis or Valkey beside them:
// policies, which one heed fetches for all, and turns to start requests.
//
// It deals in bytes and keys and knows nothing of what they mean. Open
// connects to the store (url.go), Policies shares what is known of origins
// (policies.go, scripts.go) and tells of changes (watch.go, listen.go), Turns has all heeds
// take turns (turns.go, turnscripts.go) and counts them (members.go). A store
// that does not answer costs the first caller a moment and the others nothing
// (away.go): every heed can do without it, also for turns (alone.go).
//
// What lies in the store, all of it with a time to live:
//
//	heed:1:SPACE:{TAG}:policy       hash: version, record and snapshot by name, and the last drop
//	heed:1:SPACE:{TAG}:lease:NAME   token of the heed that fetches, or "alone"
//	heed:1:SPACE:changes            channel: sender and tag of what has changed
//	heed:1:{HOST}:turns             hash: who has started, may start and waits
//	heed:1:heeds                    hash: who takes turns
//	heed:1:pauses                   channel: sites that want to be left alone
//
// SPACE keeps heeds apart that reach sites in different ways. The braces put
// all of one tag on one node of a Cluster.
//
// Outside package: github.com/redis/go-redis.
package fleet
