-- Says that an instance lives, and learns how many do.
--
-- KEYS[1]   a sorted set of instances, scored by until when they are believed to live
-- ARGV[1]   the instance
-- ARGV[2]   for how many microseconds from now it is to be believed
-- reply     how many instances there are

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
redis.call('ZADD', KEYS[1], string.format('%.0f', now + ARGV[2]), ARGV[1])
redis.call('PEXPIREAT', KEYS[1], string.format('%.0f', math.ceil((now + ARGV[2]) / 1000)))
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now))
return redis.call('ZCARD', KEYS[1])
