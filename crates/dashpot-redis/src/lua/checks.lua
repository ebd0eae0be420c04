-- How each algorithm judges a key, and what it would write: for decide.lua and lease.lua, which say what these are
-- told and what is kept.

local call, sub, format, tonumber = redis.call, string.sub, string.format, tonumber
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local taking = true
local reply = {time[1], time[2], '0'}
local passes, elsewhen = true, false
-- For each key what is to be written if everything passes: a string and when it ends, or a function.
local writes, ends = {}, {}

-- When a block ends, and the state behind it.
local function split(raw)
  return tonumber(sub(raw, 2, 17)), sub(raw, 19)
end

-- A state that was not plain, the rate it was asked about at, and how it stands: it may be asked about again.
local known

local function bucket(i, at)
  local key, rate, micros = KEYS[i], ARGV[at], tonumber(ARGV[at + 1])
  local raw = call('GET', key)
  reply[i + 3] = raw
  local tat, grains = now, 0
  local state, blocked = raw, 0
  -- What is written behind it, if somebody has leased of it, and until when that matters.
  local leases, lasting
  if state and string.byte(state) == 33 then
    blocked, state = split(state)
  end
  if state and state ~= '' then
    tat = tonumber(sub(state, 1, 16))
    if known and raw == known[1] and rate == known[2] then
      tat, grains, leases, lasting = known[3], known[4], known[5], known[6]
    elseif sub(state, 17) ~= rate then
      local beyond, own, text = string.match(state, ' (%d+) ([^|]*)(.*)$')
      grains = tonumber(beyond)
      local new = sub(rate, 4)
      local held, out, part = {}, 0, 0
      local lapse, behind, in_a_micro
      if text ~= '' then
        lapse, behind, in_a_micro = leasing()
        held, out, part, tat, grains = lapse(text, now, tat, grains, in_a_micro(own))
        leases, lasting = behind(held, out)
      end
      if own ~= new and new ~= '' then
        -- The rate has changed: as many units stay used. That is kept, whatever comes of this call.
        if tat < now then
          tat, grains = now, 0
        else
          tat, grains = convert(tat - now, grains, own, new)
          tat = math.min(now + tat, 9007199254740991)
        end
        for _, lease in ipairs(held) do
          lease[3], lease[4] = convert(lease[3], lease[4], own, new)
        end
        if leases then
          held, out, part, tat, grains = lapse(behind(held, 0), now, tat, grains, in_a_micro(new))
          leases, lasting = behind(held, out)
        end
        local ends = math.max(grains > 0 and tat + 1 or tat, blocked, lasting or 0)
        local kept = format('%016.0f %.0f %s%s', tat, grains, new, leases or '')
        if raw ~= state then
          kept = sub(raw, 1, 18) .. kept
        end
        call('SET', key, kept, 'PXAT', format('%.0f', math.ceil(ends / 1000)))
      else
        known = {raw, rate, tat, grains, leases, lasting}
      end
    end
    if tat < now then
      tat, grains = now, 0
    end
  end
  local more = tonumber(ARGV[at + 2])
  if micros == 0 and more == 0 then
    return
  end
  local ahead, room = tat - now, tonumber(ARGV[at + 3])
  if blocked > now or ahead > room or (ahead == room and grains > tonumber(ARGV[at + 4])) then
    passes = false
  elseif passes and taking then
    tat, grains = tat + micros, grains + more
    if grains == 0 then
      writes[i] = format('%016.0f%s', tat, rate)
      ends[i] = tat
    else
      local per_micro = tonumber(ARGV[at + 5])
      if grains >= per_micro then
        tat, grains = tat + 1, grains - per_micro
      end
      writes[i] = format('%016.0f %.0f%s', tat, grains, sub(rate, 3))
      ends[i] = tat + 1
    end
    if leases then
      writes[i] = writes[i] .. leases
      ends[i] = math.max(ends[i], lasting)
    end
  end
end

-- Whatever is no bucket: takes the arguments from there on, and says where the next key's are. What it is made
-- of is made only when it is called, because nearly all calls are about buckets.
local function other(i, letter, at)
  -- The exact product of two whole numbers below 2⁵³ is below another such product.
  local function product_below(a, b, c, d)
    local one, other = a * b, c * d
    if one < 9007199254740992 and other < 9007199254740992 then
      return one < other
    end
    local function limbs(x, y)
      local x1, y1 = math.floor(x / 67108864), math.floor(y / 67108864)
      local x0, y0 = x - x1 * 67108864, y - y1 * 67108864
      local low, middle = x0 * y0, x1 * y0
      local carry = math.floor(low / 67108864)
      low = low - carry * 67108864
      middle = middle + carry
      carry = math.floor(middle / 67108864)
      middle = (middle - carry * 67108864) + x0 * y1
      local more = math.floor(middle / 67108864)
      return x1 * y1 + carry + more, middle - more * 67108864, low
    end
    local a2, a1, a0 = limbs(a, b)
    local c2, c1, c0 = limbs(c, d)
    if a2 ~= c2 then return a2 < c2 end
    if a1 ~= c1 then return a1 < c1 end
    return a0 < c0
  end

  -- Keeps a sorted set until then, or longer.
  local function extend(key, moment)
    local until_then = math.ceil(moment / 1000)
    if math.ceil(now / 1000) + call('PTTL', key) < until_then then
      call('PEXPIREAT', key, format('%.0f', until_then))
    end
  end

  -- In the window from start to before `stop`, unless the newest that was counted in is later.
  local function window(i, cost, limit, start, stop)
    local raw = call('GET', KEYS[i])
    reply[i + 3] = raw
    local blocked, count, leases = 0, 0, ''
    if raw then
      if string.byte(raw) == 33 then
        blocked, raw = split(raw)
      end
      if raw ~= '' then
        local counted = tonumber(sub(raw, 1, 16))
        if counted >= start then
          start, stop = counted, tonumber(sub(raw, 17, 32))
          count, leases = string.match(raw, '^(%d+)(.*)$', 33)
          count = tonumber(count)
        end
      end
    end
    if cost == 0 then
      return
    elseif blocked > now or count + cost > limit then
      passes = false
    else
      writes[i] = format('%016.0f%016.0f%.0f%s', start, stop, count + cost, leases)
      ends[i] = stop
    end
  end

  local function sliding_window(i, cost, limit, length)
    local raw = call('GET', KEYS[i])
    reply[i + 3] = raw
    local blocked, moment, counted, previous, count, leases = 0, now, nil, 0, 0, ''
    if raw then
      if string.byte(raw) == 33 then
        blocked, raw = split(raw)
      end
      if raw ~= '' then
        counted = tonumber(sub(raw, 1, 16))
        moment = math.max(now, counted)
      end
    end
    local elapsed = moment % length
    local start = moment - elapsed
    if counted then
      local before, last, text = string.match(raw, '^(%d+) (%d+)(.*)$', 17)
      if start == counted then
        previous, count, leases = tonumber(before), tonumber(last), text
      elseif start == counted + length then
        previous = tonumber(last)
      end
    end
    if cost == 0 then
      return
    end
    local room = limit - cost - count
    if blocked > now or room < 0 or product_below(room, length, previous, length - elapsed) then
      passes = false
    else
      writes[i] = format('%016.0f%.0f %.0f%s', start, previous, count + cost, leases)
      ends[i] = start + 2 * length
    end
  end

  local function sliding_log(i, cost, limit, length)
    local key = KEYS[i]
    local marks = call('ZMSCORE', key, '-', '!')
    local before, blocked = marks[1] and -1 - marks[1] or 0, marks[2] and -marks[2] or 0
    local marked = (marks[1] and 1 or 0) + (marks[2] and 1 or 0)
    local newest = call('ZREVRANGE', key, 0, 0, 'WITHSCORES')
    if not newest[1] or tonumber(newest[2]) < 0 then
      newest = nil
    end
    local units, moment = before, now
    if newest then
      units, moment = tonumber(newest[2]), math.max(now, tonumber(newest[1]))
    end
    -- How many entries have left the window, found by bisection: mostly none, then few.
    local function left(rank)
      local entry = call('ZRANGE', key, marked + rank, marked + rank, 'WITHSCORES')
      if entry[1] and tonumber(entry[1]) + length <= moment then
        return tonumber(entry[2])
      end
    end
    local gone, forgotten = 0, before
    if newest then
      local step, upto = 1, left(0)
      while upto do
        gone, forgotten = gone + step, upto
        step = step * 2
        upto = left(gone + step - 1)
      end
      while step > 1 do
        step = step / 2
        upto = left(gone + step - 1)
        if upto then
          gone, forgotten = gone + step, upto
        end
      end
    end
    local live = units - forgotten
    -- When the unit of this number, counted from the oldest that is live, was taken.
    local function taken(number)
      local least = format('%.0f', forgotten + number)
      return call('ZRANGEBYSCORE', key, least, '+inf', 'LIMIT', 0, 1)[1] or false
    end
    reply[i + 3] = {
      marks[2] or false, format('%.0f', live), newest and newest[1] or false,
      live > 0 and taken(math.max(1, live + 1 - limit)) or false, false,
      live > 0 and taken(live) or false,
    }
    if cost == 0 then
      return
    elseif live + cost > limit then
      passes = false
      reply[i + 3][5] = taken(live + cost - limit)
    elseif blocked > now then
      passes = false
    else
      writes[i] = function()
        if gone > 0 then
          call('ZREMRANGEBYRANK', key, marked, marked + gone - 1)
        end
        local upto = format('%.0f', units + cost)
        call('ZADD', key, format('%.0f', -1 - forgotten), '-', upto, format('%016.0f', moment))
        extend(key, moment + length)
      end
    end
  end

  local function concurrency(i, cost, limit, lease, count, at)
    local key = KEYS[i]
    -- Permits whose holder has died.
    local lapsed, out, blocked = call('ZRANGEBYSCORE', key, '(0', format('%.0f', now)), 0, 0
    if lapsed[1] then
      for _, permit in ipairs(lapsed) do
        out = out - string.match(permit, ':(%d+)$')
        call('ZREM', key, permit)
      end
      call('ZINCRBY', key, format('%.0f', -out), 'n')
    end
    local marks = call('ZMSCORE', key, 'n', '!')
    -- Not −0, which is another text.
    out, blocked = marks[1] and 0 - marks[1] or 0, marks[2] and 0 - marks[2] or 0
    reply[i + 3] = {marks[2] or false, format('%.0f', out)}
    if cost == 0 then
      return
    elseif blocked > now or out + cost > limit then
      passes = false
    else
      writes[i] = function()
        local lapses = format('%.0f', now + lease)
        for permit = at, at + count - 1 do
          call('ZADD', key, lapses, ARGV[permit])
        end
        call('ZADD', key, format('%.0f', -(out + cost)), 'n')
        extend(key, now + lease)
      end
    end
  end

  if letter == 'u' then
    reply[i + 3] = call('GET', KEYS[i])
    if ARGV[at] ~= '0' and reply[i + 3] and split(reply[i + 3]) > now then
      passes = false
    end
    return at + 1
  end
  local cost, limit = tonumber(ARGV[at]), tonumber(ARGV[at + 1])
  if letter == 'f' then
    local first, length = tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
    if now < first then
      window(i, cost, limit, 0, first)
    else
      local start = now - (now - first) % length
      window(i, cost, limit, start, start + length)
    end
    return at + 4
  elseif letter == 'c' then
    local start, stop, next = tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
    if now < start or now >= next then
      elsewhen = true
    elseif now < stop then
      window(i, cost, limit, start, stop)
    else
      window(i, cost, limit, stop, next)
    end
    return at + 5
  elseif letter == 's' then
    sliding_window(i, cost, limit, tonumber(ARGV[at + 2]))
    return at + 3
  elseif letter == 'l' then
    sliding_log(i, cost, limit, tonumber(ARGV[at + 2]))
    return at + 3
  end
  local count = tonumber(ARGV[at + 3])
  concurrency(i, cost, limit, tonumber(ARGV[at + 2]), count, at + 4)
  return at + 4 + count
end

