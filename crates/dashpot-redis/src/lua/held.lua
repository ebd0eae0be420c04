-- Leases: units that were taken of a key for a holder to spend, until they end. They are written behind the state,
-- after a "|", in the order in which they end: "holder,units,micros,grains,end,number;". How long the units
-- take is told for buckets only; the number is that of the holder's last call.
--
-- While units are out, a bucket holds as many less: else it would fill up behind them, and both would be spent. So
-- it is never nearer to being full than all that is out takes. When a lease ends, its holder may have spent it, or
-- have died: the bucket may fill up again, but the units do not come back.
--
-- What leases are reckoned with: made only when it is asked for, because nearly all calls are about keys that nobody
-- has leased of.
local function leasing()
  -- The leases of a text that have not ended by now, what they take together, and how the bucket stands by now which
  -- was to be full then. There are so many grains in a microsecond.
  local function lapse(text, now, tat, grains, per_micro)
    local held, micros, beyond = {}, 0, 0
    local pattern = '(%x+),(%d+),(%d+),(%d+),(%d+),(%d+);'
    for holder, units, long, part, ends, number in string.gmatch(text, pattern) do
      held[#held + 1] =
        {holder, tonumber(units), tonumber(long), tonumber(part), tonumber(ends), tonumber(number)}
      micros, beyond = micros + long, beyond + part
      if beyond >= per_micro then
        micros, beyond = micros + 1, beyond - per_micro
      end
    end
    local function hold(moment)
      local least = moment + micros
      if tat < least or (tat == least and grains < beyond) then
        tat, grains = least, beyond
      end
    end
    while held[1] and held[1][5] <= now do
      local ended = table.remove(held, 1)
      hold(ended[5])
      micros, beyond = micros - ended[3], beyond - ended[4]
      if beyond < 0 then
        micros, beyond = micros - 1, beyond + per_micro
      end
    end
    hold(now)
    return held, micros, beyond, tat, grains
  end

  -- What is written behind a state, and until when a bucket is to be kept for it.
  local function behind(held, micros)
    if #held == 0 then
      return '', 0
    end
    local parts = {}
    for i, lease in ipairs(held) do
      parts[i] = string.format('%s,%.0f,%.0f,%.0f,%.0f,%.0f;', unpack(lease))
    end
    return '|' .. table.concat(parts), held[#held][5] + micros + 1
  end

  -- How many grains of a rate, "l:w", there are in a microsecond.
  local function in_a_micro(rate)
    return 1000 * string.match(rate, '^(%d+)')
  end

  return lapse, behind, in_a_micro
end
