-- It grants the right to start, or returns how long to wait for it: whether it was
-- granted; else the milliseconds after which to ask again, those until the turn if all earlier
-- ones are used, those of them in which the site is paused, and the number of others that
-- wait.
--
-- A store that has lost its data while it ran has no longer the heed, or lost it a moment ago
-- (beat.lua): that counts as a start, too.
--
--	KEYS  the hash, and that of heeds where it is on the same server
--	ARGV  a nonce, ticket, milliseconds of the grant, most fields,
--	      milliseconds of the pause, milliseconds that a ticket
--	      is kept beyond its wait, milliseconds to keep, the heed if it is registered, then
--	      for each turn: its name, its delay, and the time since the last start known to the
--	      caller (it may be in the future)

local ticket, keeps = 'q:'..ARGV[2], tonumber(ARGV[7])
local server = redis.pcall('INFO', 'server')
if type(server) == 'table' then return redis.error_reply('NOPERM the user needs the right +info') end
local run = string.match(server, 'run_id:(%w+)') or ''
if h.run ~= run then
  -- whole seconds, on both sides: the server may be a second younger than it says
  local up = tonumber(string.match(server, 'uptime_in_seconds:(%d+)') or nil)
  local born = up and math.min(now, now - up * 1000 + 1000) or 0
  h.floor = text(math.max(been('floor'), h.run and now or born))
  redis.call('HSET', KEYS[1], 'run', run, 'floor', h.floor)
end
if KEYS[2] and ARGV[8] ~= '' then
  local heeds = redis.call('HMGET', KEYS[2], ARGV[8], 'since')
  local since = heeds[1] and tonumber(heeds[2] or 0) or now
  if since > been('floor') then
    h.floor = text(math.min(since, now))
    redis.call('HSET', KEYS[1], 'floor', h.floor)
  end
end
local floor = math.max(been('floor'), been('moved'))
local hold = math.max(math.min(tonumber(h.hold or 0) or 0, now + 3600000), now + tonumber(ARGV[5]))
if hold > now then redis.call('HSET', KEYS[1], 'hold', text(hold)) end
keep(math.max(keeps, (hold - now) * 2))

local mine, turns, longest, ready, held = {}, '', 0, hold, false
for i = 9, #ARGV, 3 do
  local turn, delay = ARGV[i], tonumber(ARGV[i + 1])
  mine[turn], turns, longest = true, turns..' '..turn, math.max(longest, delay)
  local holder, till, since = string.match(h['l:'..turn] or '', '^(%S+) (%d+) (%d+)$')
  if holder and tonumber(till) <= now then
    started(turn, tonumber(till)) -- its holder has died, perhaps after the start
    redis.call('HDEL', KEYS[1], 'l:'..turn)
  elseif holder then
    ready, held = math.max(ready, since + delay, now + 50), true
  elseif h['l:'..turn] then
    started(turn, now)
    redis.call('HDEL', KEYS[1], 'l:'..turn)
  end
  ready = math.max(ready, math.max(floor, now - tonumber(ARGV[i + 2]), been('s:'..turn)) + delay)
end

local place = tonumber(string.match(h[ticket] or '', '^%d+') or nil)
local ahead, others, fields = 0, 0, 0
for name, value in pairs(h) do
  local kind, n, till, of = string.sub(name, 1, 2), string.match(value, '^(%d+) (%d+)( .+)$')
  fields = fields + 1
  if kind == 'q:' and name ~= ticket then
    if not till or tonumber(till) < now then
      redis.call('HDEL', KEYS[1], name)
    else
      local meets = 0
      for turn in string.gmatch(of, '%S+') do
        if mine[turn] then meets = 1 end
      end
      others = others + meets
      if not (place and tonumber(n) > place) then ahead = ahead + meets end
    end
  elseif kind == 's:' and been(name) + keeps < now then
    redis.call('HDEL', KEYS[1], name)
  end
end

if ahead == 0 and ready <= now then
  for turn in pairs(mine) do
    redis.call('HSET', KEYS[1], 'l:'..turn, ARGV[2]..' '..text(now + tonumber(ARGV[3]))..' '..text(now))
  end
  redis.call('HDEL', KEYS[1], ticket)
  return {1, 0, 0, 0, others, tonumber(ARGV[1])}
end
local again, left = math.max(ready - now, 1), math.max(hold - now, 0)
if ahead > 0 then again = math.max(again, 100) end
local wait = again + ahead * longest
if held and hold <= now then again = math.min(again, 200) end -- it may be given back
if not place then
  if fields >= tonumber(ARGV[4]) then return {0, math.max(again, 1000), wait, left, others, tonumber(ARGV[1])} end
  if not string.match(h.n or '0', '^%d+$') then redis.call('HDEL', KEYS[1], 'n') end
  place = redis.call('HINCRBY', KEYS[1], 'n', 1)
end
redis.call('HSET', KEYS[1], ticket, text(place)..' '..text(now + again + tonumber(ARGV[6]))..turns)
return {0, again, wait, left, others, tonumber(ARGV[1])}
