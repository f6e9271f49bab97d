package fleet

// The turns of a host are one hash, so that all of it is on one node of a Cluster. Times are
// milliseconds of that node's clock; no other clock is used. Its fields:
//
//	s:TURN    when the last request of the turn started
//	l:TURN    the ticket that may start now, until when, since when
//	q:TICKET  a waiting ticket: its position, until when it is kept, the turns
//	n         the last position
//	hold      the end of the site's pause
//	moved     when a request started that counts in all lanes
//	run       the server that wrote the hash last
//	floor     when that server started, or took over from another
//
// A server that starts may have lost data, and a server that takes over may lack the last of
// it. Therefore floor counts as a start: one delay passes after it.

// turnClock is the beginning of every script that needs the time (now) and the hash (h).
const turnClock = `
local t = redis.pcall('TIME')
if t.err then return redis.error_reply('NOPERM the user needs the right +time') end
local now = t[1] * 1000 + math.ceil(t[2] / 1000)
local function text(n) return string.format('%.0f', n) end
local h = {}
local flat = redis.call('HGETALL', KEYS[1])
for i = 1, #flat, 2 do h[flat[i]] = flat[i + 1] end
local function keep(ms)
  if redis.call('PTTL', KEYS[1]) < ms then redis.call('PEXPIRE', KEYS[1], text(ms)) end
end
-- a time that has been: if it has not, the clock was set, and what is no time may be now
local function been(field)
  local at = tonumber(h[field] or 0)
  if not at or at < 0 or at > now then
    h[field] = text(now)
    redis.call('HSET', KEYS[1], field, h[field])
  end
  return tonumber(h[field] or 0)
end
local function started(turn, at)
  if at > been('s:'..turn) then
    h['s:'..turn] = text(at)
    redis.call('HSET', KEYS[1], 's:'..turn, h['s:'..turn])
  end
end
`

// askScript grants the right to start, or returns how long to wait for it: whether it was
// granted; else the milliseconds after which to ask again, those until the turn if all earlier
// ones are used, those of them in which the site is paused, and the number of others that
// wait.
//
// A store that has lost its data while it ran has no longer the heed, or lost it a moment ago
// (beatScript): that counts as a start, too.
//
//	KEYS  the hash, and that of heeds where it is on the same server
//	ARGV  a nonce, ticket, milliseconds of the grant, most fields,
//	      milliseconds of the pause, milliseconds that a ticket
//	      is kept beyond its wait, milliseconds to keep, the heed if it is registered, then
//	      for each turn: its name, its delay, and the time since the last start known to the
//	      caller (it may be in the future)
var askScript = newScript(opTurns, isInts(5), turnClock+`
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
`)

// probeScript uses all commands of the other scripts, to test whether they are possible: see
// probeKeys. It returns the token.
var probeScript = newScript(opOther, isText, turnClock+probeKeys+`
if type(redis.pcall('INFO', 'server')) == 'table' then return redis.error_reply('NOPERM the user needs the right +info') end
redis.call('HSET', KEYS[1], 'at', text(now), 'token', ARGV[2])
keep(tonumber(ARGV[1]))
return redis.call('HGET', KEYS[1], 'token')
`)

// movedScript records a start that counts in all lanes.
//
//	KEYS  the hash
//	ARGV  milliseconds since then, milliseconds to keep
var movedScript = newScript(opTurns, isFlag, turnClock+`
local at = now - tonumber(ARGV[1])
if at > been('moved') then redis.call('HSET', KEYS[1], 'moved', text(at)) end
keep(tonumber(ARGV[2]))
return 1
`)

// startedScript records the start of a request and ends its grant.
//
//	KEYS  the hash
//	ARGV  ticket, milliseconds since then, milliseconds to keep, turns
var startedScript = newScript(opTurns, isFlag, turnClock+`
for i = 4, #ARGV do
  started(ARGV[i], now - tonumber(ARGV[2]))
  if string.match(h['l:'..ARGV[i]] or '', '^%S+') == ARGV[1] then redis.call('HDEL', KEYS[1], 'l:'..ARGV[i]) end
end
keep(tonumber(ARGV[3]))
return 1
`)

// heldScript extends grants that are still the caller's; with 0 milliseconds it removes them,
// and the position in the queue, without a trace.
//
//	KEYS  the hash
//	ARGV  ticket, milliseconds, turns
var heldScript = newScript(opTurns, isFlag, turnClock+`
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
`)

// holdScript pauses the site, or with 0 milliseconds ends its pause, and publishes that.
//
//	KEYS  the hash
//	ARGV  milliseconds from now, milliseconds to keep, channel, message
var holdScript = newScript(opTurns, isFlag, turnClock+`
local till = now + tonumber(ARGV[1])
if ARGV[1] == '0' then
  redis.call('HDEL', KEYS[1], 'hold')
elseif till > (tonumber(h.hold or 0) or 0) then
  redis.call('HSET', KEYS[1], 'hold', text(till))
end
keep(tonumber(ARGV[2]))
redis.call('PUBLISH', ARGV[3], ARGV[4])
return 1
`)

// beatScript registers a heed, and returns the server's time, the place of the heed, one more
// than the highest place, and the number of heeds. A place stays the same while its heed is
// registered, also when the store has lost it, and becomes free some time later. For so long
// the highest place before the loss counts for all: other heeds may not have registered again
// yet. Of two heeds with one place, the first that asks gets another. The script fails where
// no turn could be granted.
//
//	KEYS  the hash of heeds: place, and until when it is valid; "lost" is the highest place
//	      before a loss, until when it counts, and "since" when the loss was found
//	ARGV  a nonce, heed, milliseconds of its validity, its earlier place, -1: none, one more
//	      than the highest place then, most heeds
var beatScript = newScript(opOther, isMember, turnClock+`
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
`)
