-- It records a start that counts in all lanes.
--
--	KEYS  the hash
--	ARGV  milliseconds since then, milliseconds to keep

local at = now - tonumber(ARGV[1])
if at > been('moved') then redis.call('HSET', KEYS[1], 'moved', text(at)) end
keep(tonumber(ARGV[2]))
return 1
