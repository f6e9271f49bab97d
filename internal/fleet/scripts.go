package fleet

import "github.com/redis/go-redis/v9"

// The scripts run whole on the node that has the keys: nothing comes between
// their looks and their writes. The hash of a tag has three fields for each
// name: NAME:v, the version; NAME:r, the record; NAME:s, the snapshot. Once the
// tag was dropped it has :d, which is the version of every name that has none
// since then: what heeds had before is dropped, under whatever name.

// newerScript returns version, record and snapshot, unless the version is the
// one given or there is nothing; no record when the name was dropped; version -1
// when the one given has gone.
//
//	KEYS  the hash
//	ARGV  name, version that is known
var newerScript = redis.NewScript(`
local v = redis.call('HGET', KEYS[1], ARGV[1]..':v')
local is = v or redis.call('HGET', KEYS[1], ':d') or '0'
if is == ARGV[2] then return false end
if is == '0' then return {'-1', '', ''} end
if not v then return {is, '', ''} end
return {v, redis.call('HGET', KEYS[1], ARGV[1]..':r'), redis.call('HGET', KEYS[1], ARGV[1]..':s') or ''}
`)

// leaseScript takes the lease, and tells what became of it: "ours"; "look" when
// there is another version than the one given; "alone" when who had the lease
// could not help; "held" otherwise.
//
//	KEYS  the hash, the lease
//	ARGV  name, version that is known ("0": none), token, milliseconds
var leaseScript = redis.NewScript(`
local is = redis.call('HGET', KEYS[1], ARGV[1]..':v') or redis.call('HGET', KEYS[1], ':d') or '0'
if is ~= ARGV[2] then return 'look' end
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
// those who wait are told that they are alone. What was fetched before a drop is
// not stored after it. A hash that has too many fields begins anew: names cost
// nothing.
//
//	KEYS  the hash, the lease
//	ARGV  name, token, version, record, snapshot, base ("": the snapshot is given),
//	      milliseconds to keep, most fields, channel, message, milliseconds of
//	      "alone", version that was known when the lease was taken
var endScript = redis.NewScript(`
if redis.call('GET', KEYS[2]) ~= ARGV[2] then return 0 end
local v, d = redis.call('HGET', KEYS[1], ARGV[1]..':v'), redis.call('HGET', KEYS[1], ':d')
if d and (v or d) ~= ARGV[12] then
  redis.call('DEL', KEYS[2])
  return 0
end
if ARGV[4] == '' or (ARGV[6] ~= '' and ARGV[6] ~= v) then
  redis.call('SET', KEYS[2], 'alone', 'PX', ARGV[11])
  return 0
end
if not v and redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[8]) then
  redis.call('DEL', KEYS[1])
  if d then redis.call('HSET', KEYS[1], ':d', d) end
end
redis.call('HSET', KEYS[1], ARGV[1]..':v', ARGV[3], ARGV[1]..':r', ARGV[4])
if ARGV[6] == '' then redis.call('HSET', KEYS[1], ARGV[1]..':s', ARGV[5]) end
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[7]) then redis.call('PEXPIRE', KEYS[1], ARGV[7]) end
redis.call('DEL', KEYS[2])
redis.call('PUBLISH', ARGV[9], ARGV[10])
return 1
`)

// dropScript forgets all of a tag, and leaves word of it; it returns whether
// there was anything. Who fetches for it at this moment fetched before, and may
// not store; the lease for all clients is free at once.
//
//	KEYS  the hash, the lease of the empty name
//	ARGV  version, milliseconds to keep, channel, message
var dropScript = redis.NewScript(`
local had = redis.call('HLEN', KEYS[1]) > redis.call('HEXISTS', KEYS[1], ':d')
redis.call('DEL', KEYS[1], KEYS[2])
redis.call('HSET', KEYS[1], ':d', ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('PUBLISH', ARGV[3], ARGV[4])
return had and 1 or 0
`)
