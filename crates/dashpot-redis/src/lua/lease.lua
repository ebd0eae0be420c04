-- Leases units of one key to a holder, and takes back what it did not spend, at one moment of Redis's own clock.
--
-- KEYS[1]   where the state of the key is kept
-- ARGV      1  the holder, and 12 the number of its call, which only grows: one that comes late is not heard
--           2  for how many microseconds from now; not beyond the window the units are taken from
--           3  the letter of the algorithm as in decide.lua: b, f, c or s
--           4  b: the rate, "l:w". s: the length of the window
--           5  units that it keeps of those it has, and for b how long they take: 6 micros, 7 grains
--           8  units that it has spent since it last heard an answer, and how long they take: 9 micros, 10 grains.
--              What else it was given comes back: it did not need it, or never heard that it was given
--           11 how many offers follow from 13 on, the largest first, of which the largest that passes is taken:
--              units, and what decide.lua is told about them
-- reply     {seconds, microseconds, what came of it, state of the key, for how many microseconds,
--             whether it was known to hold what it says, units}
--             "1" taken, "0" not, "2" nothing at all: the calendar has come to another window than expected
--
-- Who holds a lease is known by it: once it has ended, or the key was reset, nothing of it is kept or given back.

local lapse, behind, in_a_micro = leasing()
local key, holder, letter = KEYS[1], ARGV[1], ARGV[3]
local kept, spent, offers = tonumber(ARGV[5]), tonumber(ARGV[8]), tonumber(ARGV[11])
local number = tonumber(ARGV[12])

-- How many arguments there are to an offer.
local size = ({b = 8, f = 6, c = 7, s = 5})[letter]
if letter == 'c' and offers > 0 then
  local start, next = tonumber(ARGV[17]), tonumber(ARGV[19])
  if now < start or now >= next then
    return {time[1], time[2], '2'}
  end
end

-- The state without what comes before it, and what that is; and the leases behind it.
local function parts(raw)
  local before = ''
  if string.byte(raw) == 33 then
    before, raw = sub(raw, 1, 18), sub(raw, 19)
  end
  local state, text = string.match(raw, '^([^|]*)(.*)$')
  return before, state, text
end

-- When the window ends that a state is about. Buckets go on.
local function window_end(state)
  if letter == 'b' then
    return 9007199254740991
  elseif letter == 's' then
    return tonumber(sub(state, 1, 16)) + ARGV[4]
  end
  return tonumber(sub(state, 17, 32))
end

-- Puts a lease where it belongs.
local function insert(held, lease)
  local at = #held + 1
  while at > 1 and held[at - 1][5] > lease[5] do
    at = at - 1
  end
  table.insert(held, at, lease)
end

-- Takes the holder's lease from among these.
local function take(held)
  for at, lease in ipairs(held) do
    if lease[1] == holder then
      return table.remove(held, at)
    end
  end
end

local function put(before, state, held, out, ends)
  local text, lasting = behind(held, out)
  ends = math.max(ends, lasting, before ~= '' and tonumber(sub(before, 2, 17)) or 0)
  if ends <= now then
    call('DEL', key)
  else
    call('SET', key, before .. state .. text, 'PXAT', format('%.0f', math.ceil(ends / 1000)))
  end
end

-- What is kept stays, and what is neither kept nor spent is there for everybody again. Says whether the lease is
-- known.
local function return_units()
  local raw = call('GET', key)
  if not raw then
    return false
  end
  local before, state, text = parts(raw)
  if text == '' then
    return false
  end
  local micros, grains = tonumber(ARGV[6]), tonumber(ARGV[7])
  local gone, part = tonumber(ARGV[9]), tonumber(ARGV[10])
  local tat, beyond, own, per_micro = now, 0, nil, 1
  if letter == 'b' then
    tat = tonumber(sub(state, 1, 16))
    beyond, own = string.match(state, ' (%d+) (.*)$')
    beyond, per_micro = tonumber(beyond), in_a_micro(own)
    if own ~= ARGV[4] then
      micros, grains = convert(micros, grains, ARGV[4], own)
      gone, part = convert(gone, part, ARGV[4], own)
    end
  end
  local held, out, least
  held, out, least, tat, beyond = lapse(text, now, tat, beyond, per_micro)
  local lease = take(held)
  if not lease then
    return false
  elseif lease[6] >= number then
    return false, true
  elseif lease[2] < kept then
    return false
  end
  local back = math.max(0, lease[2] - kept - spent)
  if kept > 0 then
    insert(held, {holder, kept, micros, grains, math.min(now + ARGV[2], window_end(state)), number})
  end
  if letter == 'b' then
    if back > 0 then
      -- As it would be had they not been taken; but never nearer to being full than what is still out takes.
      tat, beyond = tat - lease[3] + micros + gone, beyond - lease[4] + grains + part
      while beyond < 0 do
        tat, beyond = tat - 1, beyond + per_micro
      end
      while beyond >= per_micro do
        tat, beyond = tat + 1, beyond - per_micro
      end
    end
    held, out, least, tat, beyond = lapse(behind(held, 0), now, tat, beyond, per_micro)
    put(before, format('%016.0f %.0f %s', tat, beyond, own), held, out, beyond > 0 and tat + 1 or tat)
  elseif letter == 's' then
    local previous, count = string.match(state, '^(%d+) (%d+)$', 17)
    count = math.max(0, count - back)
    put(before, format('%s%s %.0f', sub(state, 1, 16), previous, count), held, 0, window_end(state) + ARGV[4])
  else
    local count = math.max(0, sub(state, 33) - back)
    put(before, format('%s%.0f', sub(state, 1, 32), count), held, 0, window_end(state))
  end
  return true
end

local is_known, is_late = return_units()
if is_late then
  kept, offers = 0, 0
elseif not is_known then
  kept = 0
end

-- Whether an offer passes; if it does, what it would write is at hand.
local function is_good(offer)
  local at = 13 + (offer - 1) * size
  passes = true
  if letter == 'b' then
    bucket(1, at + 2)
  else
    other(1, letter, at + 2)
  end
  return passes
end

-- The largest that passes, found by halves: mostly it is the first, or there is none.
local function best()
  if offers == 0 or is_good(1) then
    return offers > 0 and 1
  elseif offers == 1 or not is_good(offers) then
    return false
  end
  local low, high = 1, offers
  while high - low > 1 do
    local middle = math.floor((low + high) / 2)
    if is_good(middle) then
      high = middle
    else
      low = middle
    end
  end
  return high
end

local units, at, offer = 0, 13, best()
if offer then
  at = 13 + (offer - 1) * size
  units = tonumber(ARGV[at])
end

if units > 0 then
  local before, state, text = parts(writes[1])
  local per_micro = letter == 'b' and tonumber(ARGV[at + 7]) or 1
  local held, out = lapse(text, now, now, 0, per_micro)
  take(held)
  local micros, grains = 0, 0
  if letter == 'b' then
    micros, grains = tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
    if kept > 0 then
      micros, grains = micros + ARGV[6], grains + ARGV[7]
      if grains >= per_micro then
        micros, grains = micros + 1, grains - per_micro
      end
    end
  end
  local stop = math.min(now + ARGV[2], window_end(state))
  insert(held, {holder, kept + units, micros, grains, stop, number})
  out = 0
  for i, lease in ipairs(held) do
    out = out + lease[3] + 1
  end
  put(before, state, held, letter == 'b' and out or 0, ends[1])
end

local raw = call('GET', key)
local stays = 0
if units + kept > 0 then
  local before, state = parts(raw)
  stays = math.min(ARGV[2], window_end(state) - now)
end
return {time[1], time[2], units > 0 and '1' or '0', raw, format('%.0f', stays), is_known and '1' or '0',
  format('%.0f', units)}
