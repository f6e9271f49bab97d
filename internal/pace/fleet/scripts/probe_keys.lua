-- This file is the part of the probes that reads the keys of heed that a failed operation used,
-- each with the command for its type.
--
--	KEYS  a key used only for the probe, then others
--	ARGV  milliseconds to keep it, a token, then a command for each of the others

for i = 2, #KEYS do
  local value = redis.pcall(ARGV[i + 1], KEYS[i])
  if type(value) == 'table' and value.err then return redis.error_reply(value.err..' ('..KEYS[i]..')') end
end
