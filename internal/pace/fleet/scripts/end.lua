-- It ends the lease if the token is still its holder's, and stores the result; it
-- returns 1 when it did. Without a record nothing is stored, and waiting heeds get "alone". A
-- result that was fetched before a drop is not stored after it. A hash with too many fields is
-- emptied first, because clients can use any number of names.
--
--	KEYS  the hash, the lease
--	ARGV  name, token, version, record, snapshot, milliseconds to keep, most
--	      fields, channel, message, milliseconds of "alone", version that was
--	      known when the lease was taken

if redis.call('GET', KEYS[2]) ~= ARGV[2] then return 0 end
local v, d = redis.call('HGET', KEYS[1], ARGV[1]..':v'), redis.call('HGET', KEYS[1], ':d')
if d and (v or d) ~= ARGV[11] then
  redis.call('DEL', KEYS[2])
  return 0
end
if ARGV[4] == '' then
  redis.call('SET', KEYS[2], 'alone', 'PX', ARGV[10])
  return 0
end
if not v and redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[7]) then
  redis.call('DEL', KEYS[1])
  if d then redis.call('HSET', KEYS[1], ':d', d) end
end
redis.call('HSET', KEYS[1], ARGV[1]..':v', ARGV[3], ARGV[1]..':r', ARGV[4], ARGV[1]..':s', ARGV[5])
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[6]) then redis.call('PEXPIRE', KEYS[1], ARGV[6]) end
redis.call('DEL', KEYS[2])
redis.call('PUBLISH', ARGV[8], ARGV[9])
return 1
