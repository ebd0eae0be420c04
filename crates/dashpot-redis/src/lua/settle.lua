-- Gives units back that were taken, or charges units that were used beyond them.
--
-- KEYS[i]   where the state of the i-th key is kept
-- ARGV[…]   for each key a letter as in decide.lua, what to do, and what goes with it:
--   b, deed, charged at, rate, micros, grains, grains in a microsecond
--             to undo: from when on it leaks, which is then or when what was there before has leaked
--   f, deed, charged at, units, first, length
--   c, deed, start of the window charged, units, start, end, next end
--   s, deed, charged at, units, length
--   l, deed, charged at, units, length, most units remembered
--   n, deed, charged at, units, permit    whatever is to be done, the permit comes back
--             deed: "back" as the caller asks, "undo" what came to nothing elsewhere,
--             "charge" more, whether it fits or not
-- reply     {seconds, microseconds, what came of it}
--             "1" done, "2" nothing: the calendar has come to another window than expected

local lapse, behind, in_a_micro = leasing()
local call, sub, format = redis.call, string.sub, string.format
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local MOST = 9007199254740991

-- The state of a key that is not a sorted set, and what is written before it if it is blocked.
local function get(key)
  local raw = call('GET', key) or ''
  if string.byte(raw) == 33 then
    return sub(raw, 19), sub(raw, 1, 18), tonumber(sub(raw, 2, 17))
  end
  return raw, '', 0
end

local function put(key, before, blocked, state, ends)
  ends = math.max(ends, blocked)
  if ends <= now then
    call('DEL', key)
  else
    call('SET', key, before .. state, 'PXAT', format('%.0f', math.ceil(ends / 1000)))
  end
end

local function extend(key, moment)
  local until_then = math.ceil(moment / 1000)
  if math.ceil(now / 1000) + call('PTTL', key) < until_then then
    call('PEXPIREAT', key, format('%.0f', until_then))
  end
end

local function bucket(key, deed, leaks_from, rate, micros, grains, per_micro)
  local state, before, blocked = get(key)
  if state == '' and deed ~= 'charge' then
    return
  end
  local tat, beyond = now, 0
  -- What others have leased of it: it is never nearer to being full than that takes.
  local held, out, part = {}, 0, 0
  if state ~= '' then
    local own, leases
    tat = tonumber(sub(state, 1, 16))
    beyond, own, leases = string.match(state, ' (%d+) ([^|]*)(.*)$')
    beyond = tonumber(beyond)
    if leases ~= '' then
      held, out, part, tat, beyond = lapse(leases, now, tat, beyond, in_a_micro(own))
    end
    if tat < now or (tat == now and beyond == 0) then
      -- As good as new: nothing of it is left that could have a rate.
      tat, beyond = now, 0
    elseif own ~= rate then
      if deed == 'undo' and not string.match(own .. ' ' .. rate, '^(%d+):%1 (%d+):%2$') then
        -- It is not time that is carried over from one rate to the other, but units: how many have leaked since nobody knows.
        return
      end
      -- It goes on at its own rate, at which as many units take another time. What is given back is never
      -- more than was taken.
      micros, grains = convert(micros, grains, rate, own, deed ~= 'charge')
      per_micro = in_a_micro(own)
      rate = own
    end
  end
  if deed == 'charge' then
    tat, beyond = tat + micros, beyond + grains
    if beyond >= per_micro then
      tat, beyond = tat + 1, beyond - per_micro
    end
    if tat >= MOST then
      tat, beyond = MOST, 0
    end
  else
    if deed == 'undo' then
      -- What of it has leaked since is gone; what others took meanwhile would have leaked instead.
      micros = micros - math.max(0, now - leaks_from)
      if micros < 0 then
        return
      end
    end
    tat, beyond = tat - micros, beyond - grains
    if beyond < 0 then
      tat, beyond = tat - 1, beyond + per_micro
    end
    if tat < now + out or (tat == now + out and beyond < part) then
      tat, beyond = now + out, part
    end
  end
  local leases, lasting = behind(held, out)
  local state = format('%016.0f %.0f %s%s', tat, beyond, rate, leases)
  put(key, before, blocked, state, math.max(beyond > 0 and tat + 1 or tat, lasting))
end

local function window(key, deed, charged, units, start, stop)
  local state, before, blocked = get(key)
  local count, leases = 0, ''
  if state ~= '' then
    local counted = tonumber(sub(state, 1, 16))
    if deed ~= 'charge' and counted ~= charged then
      return
    elseif deed ~= 'charge' or counted >= start then
      start, stop = counted, tonumber(sub(state, 17, 32))
      count, leases = string.match(state, '^(%d+)(.*)$', 33)
      count = tonumber(count)
    end
  elseif deed ~= 'charge' then
    return
  end
  if deed == 'charge' then
    count = math.min(count + units, MOST)
  else
    count = math.max(0, count - units)
  end
  put(key, before, blocked, format('%016.0f%016.0f%.0f%s', start, stop, count, leases), stop)
end

local function sliding_window(key, deed, charged_at, units, length)
  local state, before, blocked = get(key)
  local start, previous, count, leases = now - now % length, 0, 0, ''
  if state ~= '' then
    local counted = tonumber(sub(state, 1, 16))
    local earlier, last, text = string.match(state, '^(%d+) (%d+)(.*)$', 17)
    earlier, last = tonumber(earlier), tonumber(last)
    if deed ~= 'charge' then
      local charged = charged_at - charged_at % length
      if charged == counted then
        last = math.max(0, last - units)
      elseif charged + length == counted then
        earlier = math.max(0, earlier - units)
      end
      start, previous, count, leases = counted, earlier, last, text
    elseif counted >= start then
      start, previous, count, leases = counted, earlier, last, text
    elseif counted + length == start then
      previous = last
    end
  elseif deed ~= 'charge' then
    return
  end
  if deed == 'charge' then
    count = math.min(count + units, MOST)
  end
  local ends = 0
  if count > 0 then
    ends = start + 2 * length
  elseif previous > 0 then
    ends = start + length
  end
  put(key, before, blocked, format('%016.0f%.0f %.0f%s', start, previous, count, leases), ends)
end

-- Every entry from this rank on counts so many units less.
local function renumber(key, rank, units)
  local entries = call('ZRANGE', key, rank, -1, 'WITHSCORES')
  local batch = {}
  for at = 1, #entries, 2 do
    batch[#batch + 1] = format('%.0f', entries[at + 1] - units)
    batch[#batch + 1] = entries[at]
    if #batch == 2000 or at + 2 > #entries then
      call('ZADD', key, unpack(batch))
      batch = {}
    end
  end
end

local function sliding_log(key, deed, charged_at, units, length, most)
  if deed ~= 'charge' then
    local moment = format('%016.0f', charged_at)
    local upto, rank = call('ZSCORE', key, moment), call('ZRANK', key, moment)
    if not upto then
      return
    end
    -- The one before may be a mark, below zero, if this is the oldest.
    local earlier = rank > 0 and tonumber(call('ZRANGE', key, rank - 1, rank - 1, 'WITHSCORES')[2]) or 0
    if earlier < 0 then
      earlier = -1 - (call('ZSCORE', key, '-') or -1)
    end
    local charged = upto - earlier
    local given_back = math.min(units, charged)
    renumber(key, rank, given_back)
    if given_back == charged and call('ZRANK', key, moment) + 1 < call('ZCARD', key) then
      -- The newest entry stays even if nothing is left of it: it tells the time.
      call('ZREM', key, moment)
    end
    return
  end

  local newest = call('ZREVRANGE', key, 0, 0, 'WITHSCORES')
  local base = -1 - (call('ZSCORE', key, '-') or -1)
  local upto, moment = base, now
  if newest[1] and tonumber(newest[2]) >= 0 then
    upto, moment = tonumber(newest[2]), math.max(now, tonumber(newest[1]))
  end
  upto = upto + math.min(units, most)
  call('ZADD', key, format('%.0f', -1 - base), '-', format('%.0f', upto), format('%016.0f', moment))
  -- What has left the window, and what is too much to remember: all up to some rank, found by bisection. The
  -- newest is neither.
  local first, last = call('ZCOUNT', key, '-inf', '(0'), call('ZCARD', key) - 1
  local low, high = first, last
  while low < high do
    local middle = math.floor((low + high) / 2)
    local entry = call('ZRANGE', key, middle, middle, 'WITHSCORES')
    if tonumber(entry[2]) <= upto - most or tonumber(entry[1]) + length <= moment then
      base, low = tonumber(entry[2]), middle + 1
    else
      high = middle
    end
  end
  if low > first then
    call('ZREMRANGEBYRANK', key, first, low - 1)
  end
  call('ZADD', key, format('%.0f', -1 - math.max(base, upto - most)), '-')
  extend(key, moment + length)
end

local function concurrency(key, units, permit)
  if call('ZREM', key, permit) == 1 then
    call('ZINCRBY', key, format('%.0f', units), 'n')
  end
end

-- Nothing is done unless all of it is.
local at = 1
local skip = {b = 7, f = 6, c = 7, s = 5, l = 6, n = 5}
while ARGV[at] do
  if ARGV[at] == 'c' and (now < tonumber(ARGV[at + 4]) or now >= tonumber(ARGV[at + 6])) then
    return {time[1], time[2], '2'}
  end
  at = at + skip[ARGV[at]]
end

at = 1
for i = 1, #KEYS do
  local letter, deed, charged = ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2])
  local function number(offset)
    return tonumber(ARGV[at + offset])
  end
  if letter == 'b' then
    bucket(KEYS[i], deed, charged, ARGV[at + 3], number(4), number(5), number(6))
  elseif letter == 'f' then
    local first, length = number(4), number(5)
    local start = now < first and 0 or now - (now - first) % length
    window(KEYS[i], deed, charged < first and 0 or charged - (charged - first) % length, number(3),
      start, now < first and first or start + length)
  elseif letter == 'c' then
    local start, stop = number(4), number(5)
    if now >= stop then
      start, stop = stop, number(6)
    end
    window(KEYS[i], deed, charged, number(3), start, stop)
  elseif letter == 's' then
    sliding_window(KEYS[i], deed, charged, number(3), number(4))
  elseif letter == 'l' then
    sliding_log(KEYS[i], deed, charged, number(3), number(4), number(5))
  else
    concurrency(KEYS[i], number(3), ARGV[at + 4])
  end
  at = at + skip[letter]
end
return {time[1], time[2], '1'}
