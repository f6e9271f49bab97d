-- It registers a heed, and returns the server's time, the place of the heed, one more
-- than the highest place, and the number of heeds. A place stays the same while its heed is
-- registered, also when the store has lost it, and becomes free some time later. For so long
-- the highest place before the loss counts for all: other heeds may not have registered again
-- yet. Of two heeds with one place, the first that asks gets another. The script fails where
-- no turn could be granted.
--
--	KEYS  the hash of heeds: place, and until when it is valid; "lost" is the highest place
--	      before a loss, until when it counts, and "since" when the loss was found
--	ARGV  a nonce, heed, milliseconds of its validity, its earlier place, -1: none, one more
--	      than the highest place then, most heeds

if type(redis.pcall('INFO', 'server')) == 'table' then return redis.error_reply('NOPERM the user needs the right +info') end
local me, keeps, most = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[6])
local taken, mine, size, count = {}, nil, 0, 1
for name, value in pairs(h) do
  local place, till = string.match(value, '^(%d+) (%d+)$')
  place, till = tonumber(place or nil), tonumber(till or nil)
  if name == 'since' then
    been(name)
  elseif name == me and place and place < most then
    mine = place
  elseif not place or place >= most or till < now then
    redis.call('HDEL', KEYS[1], name)
  elseif name == 'lost' then
    size = math.max(size, place + 1)
  else
    taken[place], size, count = true, math.max(size, place + 1), count + 1
  end
end
if not mine then
  mine = tonumber(ARGV[4])
  if mine >= 0 then
    size = math.max(size, tonumber(ARGV[5]))
    redis.call('HSET', KEYS[1], 'lost', text(size - 1)..' '..text(now + keeps), 'since', text(now))
  end
end
if mine < 0 or taken[mine] then
  mine = 0
  while taken[mine] do mine = mine + 1 end
end
redis.call('HSET', KEYS[1], me, text(mine)..' '..text(now + keeps))
keep(keeps)
return {now, mine, math.max(size, mine + 1), count, tonumber(ARGV[1])}
