-- It returns version, record and snapshot, unless the version is the one given or
-- there is no entry; no record when the name was dropped; version -1 when the given one is
-- lost.
--
--	KEYS  the hash
--	ARGV  name, version that is known

local v = redis.call('HGET', KEYS[1], ARGV[1]..':v')
local is = v or redis.call('HGET', KEYS[1], ':d') or '0'
if is == ARGV[2] then return false end
if is == '0' then return {'-1', '', ''} end
if not v then return {is, '', ''} end
return {v, redis.call('HGET', KEYS[1], ARGV[1]..':r'), redis.call('HGET', KEYS[1], ARGV[1]..':s') or ''}
