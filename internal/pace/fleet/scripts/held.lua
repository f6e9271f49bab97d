-- It extends grants that are still the caller's; with 0 milliseconds it removes them,
-- and the position in the queue, without a trace.
--
--	KEYS  the hash
--	ARGV  ticket, milliseconds, turns

if ARGV[2] == '0' then redis.call('HDEL', KEYS[1], 'q:'..ARGV[1]) end
for i = 3, #ARGV do
  local holder, till, since = string.match(h['l:'..ARGV[i]] or '', '^(%S+) (%d+) (%d+)$')
  if holder == ARGV[1] and ARGV[2] == '0' then
    redis.call('HDEL', KEYS[1], 'l:'..ARGV[i])
  elseif holder == ARGV[1] then
    redis.call('HSET', KEYS[1], 'l:'..ARGV[i], holder..' '..text(now + tonumber(ARGV[2]))..' '..since)
  end
end
return 1
