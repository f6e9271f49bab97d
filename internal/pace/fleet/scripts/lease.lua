-- It takes the lease, and returns the result: "ours"; "look" when there is another
-- version than the one given; "alone" when the last holder of the lease got nothing; "held"
-- otherwise.
--
--	KEYS  the hash, the lease
--	ARGV  name, version that is known ("0": none), token, milliseconds

local is = redis.call('HGET', KEYS[1], ARGV[1]..':v') or redis.call('HGET', KEYS[1], ':d') or '0'
if is ~= ARGV[2] then return 'look' end
if redis.call('SET', KEYS[2], ARGV[3], 'NX', 'PX', ARGV[4]) then return 'ours' end
if redis.call('GET', KEYS[2]) == 'alone' then return 'alone' end
return 'held'
