package fleet

import (
	"embed"

	"github.com/redis/go-redis/v9"
)

//go:embed scripts
var scripts embed.FS

// script is a script, the operation that it is counted as, and the form of its replies.
type script struct {
	op, text, hash string
	shape          func(reply any) bool // reply is nil for false
}

// newScript returns the script that files of scripts make up together, each without ".lua".
func newScript(op string, shape func(any) bool, files ...string) *script {
	text := ""
	for _, name := range files {
		part, err := scripts.ReadFile("scripts/" + name + ".lua")
		if err != nil {
			panic(err) // it is built in
		}
		text += string(part)
	}
	return &script{op, text, redis.NewScript(text).Hash(), shape}
}

// The scripts are atomic on the node that has the keys. The hash of a tag has three fields
// for each name: NAME:v, the version; NAME:r, the record; NAME:s, the snapshot. After a drop
// of the tag it has :d, the version of every name that was not stored since: older entries of
// heeds are dropped, under whatever name.
var (
	newerScript = newScript(opPolicies, isEntry, "newer")
	leaseScript = newScript(opPolicies, isLease, "lease")
	renewScript = newScript(opPolicies, isFlag, "renew")
	endScript   = newScript(opPolicies, isFlag, "end")
	dropScript  = newScript(opPolicies, isFlag, "drop")

	askScript     = newScript(opTurns, isInts(5), "turns", "ask")
	movedScript   = newScript(opTurns, isFlag, "turns", "moved")
	startedScript = newScript(opTurns, isFlag, "turns", "started")
	heldScript    = newScript(opTurns, isFlag, "turns", "held")
	holdScript    = newScript(opTurns, isFlag, "turns", "hold")
	beatScript    = newScript(opOther, isInts(4), "turns", "beat")

	probeScript      = newScript(opOther, isText, "turns", "probe_keys", "probe")
	plainProbeScript = newScript(opOther, isText, "probe_keys", "plain_probe") // of a store that has no turns
)
