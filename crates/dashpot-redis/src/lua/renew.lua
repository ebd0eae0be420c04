-- Keeps permits from lapsing while their holder lives. One that lapsed, was given back elsewhere, or was
-- forgotten by a reset stays away.
--
-- KEYS[1]   a key under concurrency
-- ARGV[1]   for how many microseconds from now
-- ARGV[…]   the permits, as they were noted; a few hundred at most
-- reply     those of them that are not there any more

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local lapses = string.format('%.0f', now + ARGV[1])
local known = redis.call('ZMSCORE', KEYS[1], unpack(ARGV, 2))
local renewed, gone = {}, {}
for i, score in ipairs(known) do
  if score then
    renewed[#renewed + 1] = lapses
    renewed[#renewed + 1] = ARGV[i + 1]
  else
    gone[#gone + 1] = ARGV[i + 1]
  end
end
if #renewed > 0 then
  redis.call('ZADD', KEYS[1], unpack(renewed))
  local until_then = math.ceil((now + ARGV[1]) / 1000)
  if math.ceil(now / 1000) + redis.call('PTTL', KEYS[1]) < until_then then
    redis.call('PEXPIREAT', KEYS[1], string.format('%.0f', until_then))
  end
end
return gone
