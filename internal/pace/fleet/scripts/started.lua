-- It records the start of a request and ends its grant.
--
--	KEYS  the hash
--	ARGV  ticket, milliseconds since then, milliseconds to keep, turns

for i = 4, #ARGV do
  started(ARGV[i], now - tonumber(ARGV[2]))
  if string.match(h['l:'..ARGV[i]] or '', '^%S+') == ARGV[1] then redis.call('HDEL', KEYS[1], 'l:'..ARGV[i]) end
end
keep(tonumber(ARGV[3]))
return 1
