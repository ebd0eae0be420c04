-- A bucket's time, told in grains: for `l` units in `w` nanoseconds (in lowest terms) a grain is 1/l of a
-- nanosecond, so that a unit takes `w` grains. A moment is whole microseconds and the grains beyond
-- them, of which there are fewer than 1000·l. The numbers between pass 2⁵³, the last whole one a double
-- is sure of, so they are written in limbs of seven digits, the smallest first. Buckets come here only
-- when their rate has changed.

-- How long so many microseconds and grains of one rate take at another: as many units, parts rounded up, or
-- down. The two rates are "l:w".
local function convert(micros, grains, from, to, down)
  local BASE = 10000000

  -- A number of up to 2⁵³, or one written in digits.
  local function wide(number)
    local digits = type(number) == 'string' and number or string.format('%.0f', number)
    local limbs = {}
    for last = #digits, 1, -7 do
      limbs[#limbs + 1] = tonumber(string.sub(digits, math.max(1, last - 6), last))
    end
    return limbs
  end

  local function trim(limbs)
    while #limbs > 1 and limbs[#limbs] == 0 do
      limbs[#limbs] = nil
    end
    return limbs
  end

  -- one·other + more
  local function multiply(one, other, more)
    local product = {}
    for i = 1, #one + #other + #more do
      product[i] = more[i] or 0
    end
    for i = 1, #one do
      local carry = 0
      for j = 1, #product - i + 1 do
        local sum = product[i + j - 1] + one[i] * (other[j] or 0) + carry
        carry = math.floor(sum / BASE)
        product[i + j - 1] = sum - carry * BASE
      end
    end
    -- What `more` alone may have left.
    return trim(product)
  end

  local function less(one, other)
    if #one ~= #other then
      return #one < #other
    end
    for i = #one, 1, -1 do
      if one[i] ~= other[i] then
        return one[i] < other[i]
      end
    end
    return false
  end

  local function double(limbs)
    local number = 0
    for i = #limbs, 1, -1 do
      number = number * BASE + limbs[i]
    end
    return number
  end

  -- one − other·times, or nil if that is below zero.
  local function subtract(one, other, times)
    local rest, borrow = {}, 0
    for i = 1, math.max(#one, #other + 1) do
      local difference = (one[i] or 0) - (other[i] or 0) * times - borrow
      borrow = -math.floor(difference / BASE)
      rest[i] = difference + borrow * BASE
    end
    return borrow == 0 and trim(rest) or nil
  end

  -- The quotient and the rest. Each digit is guessed by doubles, which is off by one at most.
  local function divide(one, other)
    local quotient, rest = {}, {0}
    for i = #one, 1, -1 do
      table.insert(rest, 1, one[i])
      trim(rest)
      local digit = math.floor(double(rest) / double(other))
      local left = subtract(rest, other, digit)
      while not left do
        digit = digit - 1
        left = subtract(rest, other, digit)
      end
      while not less(left, other) do
        digit = digit + 1
        left = subtract(left, other, 1)
      end
      quotient[i], rest = digit, left
    end
    return trim(quotient), rest
  end

  local function rate(text)
    local l, w = string.match(text, '^([1-9]%d*):([1-9]%d*)$')
    if not l or #l > 20 or #w > 20 then
      error('not a rate: ' .. text)
    end
    return l, w
  end

  local old_l, old_w = rate(from)
  local new_l, new_w = rate(to)
  local backlog = multiply(wide(micros), multiply(wide(old_l), {1000}, {0}), wide(grains))
  local scaled, part = divide(multiply(backlog, wide(new_w), {0}), wide(old_w))
  if not down and (#part > 1 or part[1] > 0) then
    scaled = multiply(scaled, {1}, {1})
  end
  local whole, beyond = divide(scaled, multiply(wide(new_l), {1000}, {0}))
  return double(whole), double(beyond)
end
