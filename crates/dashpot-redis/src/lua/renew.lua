-- Keeps permits from lapsing while their holder lives. One that lapsed, or was forgotten by a reset, stays
-- away.
--
-- KEYS[1]   a key under concurrency
-- ARGV[1]   for how many microseconds from now
-- ARGV[…]   the permits, as they were noted
-- reply     how many of them there still are

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local lapses, renewed = string.format('%.0f', now + ARGV[1]), 0
for i = 2, #ARGV do
  if redis.call('ZSCORE', KEYS[1], ARGV[i]) then
    redis.call('ZADD', KEYS[1], lapses, ARGV[i])
    renewed = renewed + 1
  end
end
if renewed > 0 then
  local until_then = math.ceil((now + ARGV[1]) / 1000)
  if math.ceil(now / 1000) + redis.call('PTTL', KEYS[1]) < until_then then
    redis.call('PEXPIREAT', KEYS[1], string.format('%.0f', until_then))
  end
end
return renewed
