package fleet

import "github.com/redis/go-redis/v9"

// The scripts run whole on the node that has the keys: nothing comes between
// their looks and their writes. The hash of a tag has three fields for each
// name: NAME:v, the version; NAME:r, the record; NAME:s, the snapshot. A record
// that is empty tells that all of the tag was dropped.

// newerScript returns version, record and snapshot, unless the version is the
// one given or there is nothing; version -1 when the one given has gone.
//
//	KEYS  the hash
//	ARGV  name, version that is known
var newerScript = redis.NewScript(`
local v = redis.call('HGET', KEYS[1], ARGV[1]..':v')
if v == ARGV[2] or not v and ARGV[2] == '0' then return false end
if not v then return {'-1', '', ''} end
return {v, redis.call('HGET', KEYS[1], ARGV[1]..':r'), redis.call('HGET', KEYS[1], ARGV[1]..':s') or ''}
`)

// leaseScript takes the lease, and tells what became of it: "ours"; "look" when
// there is another version than the one given; "alone" when who had the lease
// could not help; "held" otherwise.
//
//	KEYS  the hash, the lease
//	ARGV  name, version that is known ("0": none), token, milliseconds
var leaseScript = redis.NewScript(`
if (redis.call('HGET', KEYS[1], ARGV[1]..':v') or '0') ~= ARGV[2] then return 'look' end
if redis.call('SET', KEYS[2], ARGV[3], 'NX', 'PX', ARGV[4]) then return 'ours' end
if redis.call('GET', KEYS[2]) == 'alone' then return 'alone' end
return 'held'
`)

// renewScript makes the lease last, if it is still ours.
//
//	KEYS  the lease
//	ARGV  token, milliseconds
var renewScript = redis.NewScript(`
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
`)

// endScript gives the lease back, if it is still ours, and stores what came of
// it; it returns 1 when it did. Without a record, or when a record would stand
// beside the snapshot of another version than its base, nothing is stored, and
// those who wait are told that they are alone. A hash that has too many fields
// begins anew: names cost nothing.
//
//	KEYS  the hash, the lease
//	ARGV  name, token, version, record, snapshot, base ("": the snapshot is given),
//	      milliseconds to keep, most fields, channel, message, milliseconds of "alone"
var endScript = redis.NewScript(`
if redis.call('GET', KEYS[2]) ~= ARGV[2] then return 0 end
local known = redis.call('HGET', KEYS[1], ARGV[1]..':v') or '0'
if ARGV[4] == '' or (ARGV[6] ~= '' and ARGV[6] ~= known) then
  redis.call('SET', KEYS[2], 'alone', 'PX', ARGV[11])
  return 0
end
if known == '0' and redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[8]) then redis.call('DEL', KEYS[1]) end
redis.call('HSET', KEYS[1], ARGV[1]..':v', ARGV[3], ARGV[1]..':r', ARGV[4])
if ARGV[6] == '' then redis.call('HSET', KEYS[1], ARGV[1]..':s', ARGV[5]) end
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[7]) then redis.call('PEXPIRE', KEYS[1], ARGV[7]) end
redis.call('DEL', KEYS[2])
redis.call('PUBLISH', ARGV[9], ARGV[10])
return 1
`)

// dropScript forgets all of a tag, and leaves word of it. Who fetches for it at
// this moment fetched before, and may not store.
//
//	KEYS  the hash, the lease of the empty name
//	ARGV  version, milliseconds to keep, channel, message
var dropScript = redis.NewScript(`
local had = redis.call('HGET', KEYS[1], ':r')
redis.call('DEL', KEYS[1], KEYS[2])
redis.call('HSET', KEYS[1], ':v', ARGV[1], ':r', '')
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('PUBLISH', ARGV[3], ARGV[4])
return (had and had ~= '') and 1 or 0
`)
