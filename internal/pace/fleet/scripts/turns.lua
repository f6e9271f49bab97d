-- The turns of a host are one hash, so that all of it is on one node of a Cluster. Times are
-- milliseconds of that node's clock; no other clock is used. Its fields:
--
--	s:TURN    when the last request of the turn started
--	l:TURN    the ticket that may start now, until when, since when
--	q:TICKET  a waiting ticket: its position, until when it is kept, the turns
--	n         the last position
--	hold      the end of the site's pause
--	moved     when a request started that counts in all lanes
--	run       the server that wrote the hash last
--	floor     when that server started, or took over from another
--
-- A server that starts may have lost data, and a server that takes over may lack the last of
-- it. Therefore floor counts as a start: one delay passes after it.
--
-- This file is the beginning of every script that needs the time (now) and the hash (h).

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
