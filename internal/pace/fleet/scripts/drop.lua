-- It deletes all of a tag, and records the drop; it returns whether there was
-- anything. A fetch of the tag that is under way began earlier, and must not be stored; the
-- lease for all clients is free immediately.
--
--	KEYS  the hash, the lease of the empty name
--	ARGV  version, milliseconds to keep, channel, message, what follows it

local had = redis.call('HLEN', KEYS[1]) > redis.call('HEXISTS', KEYS[1], ':d')
redis.call('DEL', KEYS[1], KEYS[2])
redis.call('HSET', KEYS[1], ':d', ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('PUBLISH', ARGV[3], ARGV[4]..ARGV[5])
return had and 1 or 0
