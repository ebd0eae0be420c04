-- Carries out an operator's wish on one key. What a key looks like is said in decide.lua.
--
-- KEYS[1]   where its state is kept
-- ARGV[1]   "reset" forgets what was counted, "block" denies everything until then, "unblock" ends that
-- ARGV[2]   until when, in microseconds since the epoch; 0 if it is no block
-- ARGV[3]   the letter of its algorithm; may be left out for a reset
-- ARGV[4]   for s and l, the length of the window
-- reply     {seconds, microseconds}

local lapse, behind, in_a_micro = leasing()
local call, sub, format = redis.call, string.sub, string.format
local key, wish, letter = KEYS[1], ARGV[1], ARGV[3]
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local kind = call('TYPE', key)['ok']
-- Only to forget it is a wish that makes sense whatever it is.
if wish ~= 'reset' and kind ~= 'string' and kind ~= 'zset' and kind ~= 'none' then
  return redis.error_reply('WRONGTYPE ' .. key .. ' is somebody else\'s')
end
local is_set = kind == 'zset' or (kind == 'none' and (letter == 'l' or letter == 'n'))

local blocked, state = 0, ''
if is_set then
  blocked = -(call('ZSCORE', key, '!') or 0)
elseif kind == 'string' then
  state = call('GET', key)
  if string.byte(state) == 33 then
    blocked, state = tonumber(sub(state, 2, 17)), sub(state, 19)
  end
end
if wish ~= 'reset' then
  blocked = tonumber(ARGV[2])
end
-- A moment that is past would be a block again if the clock went back.
if blocked <= now then
  blocked = 0
end
if wish == 'reset' then
  call('DEL', key)
  state = ''
end

-- When what was counted does not matter any more.
local function ends()
  if is_set then
    local newest = call('ZREVRANGE', key, 0, 0, 'WITHSCORES')
    if not newest[1] or tonumber(newest[2]) < 0 then
      return 0
    end
    return letter == 'l' and tonumber(newest[1]) + ARGV[4] or tonumber(newest[2])
  elseif state == '' then
    return 0
  elseif letter == 'f' or letter == 'c' then
    return tonumber(sub(state, 17, 32))
  end
  local moment = tonumber(sub(state, 1, 16))
  if letter == 's' then
    return moment + 2 * ARGV[4]
  end
  local own, leases = string.match(state, ' %d+ ([^|]*)(.*)$')
  local held, out = lapse(leases, now, moment, 0, in_a_micro(own))
  local _, lasting = behind(held, out)
  return math.max(moment + 1, lasting)
end

local kept_until = math.max(blocked, ends())
if kept_until <= now then
  call('DEL', key)
elseif is_set then
  if blocked > 0 then
    call('ZADD', key, format('%.0f', -blocked), '!')
  else
    call('ZREM', key, '!')
  end
  call('PEXPIREAT', key, format('%.0f', math.ceil(kept_until / 1000)))
else
  local before = blocked > 0 and format('!%016.0f!', blocked) or ''
  call('SET', key, before .. state, 'PXAT', format('%.0f', math.ceil(kept_until / 1000)))
end
return {time[1], time[2]}
