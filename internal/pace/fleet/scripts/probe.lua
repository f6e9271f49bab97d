-- It uses all commands of the other scripts, to test whether they are possible: see
-- probe_keys.lua. It returns the token.

if type(redis.pcall('INFO', 'server')) == 'table' then return redis.error_reply('NOPERM the user needs the right +info') end
redis.call('HSET', KEYS[1], 'at', text(now), 'token', ARGV[2])
keep(tonumber(ARGV[1]))
return redis.call('HGET', KEYS[1], 'token')
