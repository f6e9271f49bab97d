-- It pauses the site, or with 0 milliseconds ends its pause, and publishes that.
--
--	KEYS  the hash
--	ARGV  milliseconds from now, milliseconds to keep, channel, message

local till = now + tonumber(ARGV[1])
if ARGV[1] == '0' then
  redis.call('HDEL', KEYS[1], 'hold')
elseif till > (tonumber(h.hold or 0) or 0) then
  redis.call('HSET', KEYS[1], 'hold', text(till))
end
keep(tonumber(ARGV[2]))
redis.call('PUBLISH', ARGV[3], ARGV[4])
return 1
