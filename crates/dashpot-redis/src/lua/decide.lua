-- Decides all checks of one call, all or nothing, at one moment of Redis's own clock.
--
-- KEYS[i]   where the state of the i-th key is kept
-- ARGV[1]   "1" to take the costs if all of them pass, "0" to only look
-- ARGV[…]   for each key a letter and what goes with it:
--   b, rate, micros, grains, room micros, room grains, grains in a microsecond
--             a bucket: " 0 l:w" (see convert.lua); how long the cost takes, and how far ahead of now the
--             bucket may be for it to pass
--   f, cost, limit, first, length         fixed windows of one length, cut from a first moment
--   c, cost, limit, start, end, next end  the window of a calendar that is expected now, and the next
--   s, cost, limit, length                sliding window counter
--   l, cost, limit, length                sliding log
--   n, cost, limit, lease, count, permit…  concurrency: the permits to note, each as "number:units"
--   u, cost                               no limit, but perhaps blocked
-- reply     {seconds, microseconds, what came of it, state of the first key as it was, …}
--             "1" taken, "0" not, "2" neither: the calendar has come to another window than expected
--
-- All times are whole microseconds since the epoch, all numbers whole and below 2⁵³.
--
-- What is kept, a key for each policy and caller, which expires when it does not matter any more:
--   b   "when it is empty, in 16 digits" " " "grains beyond" " " "l:w"
--   f c "start, 16" "end, 16" "count"
--   s   "start, 16" "count before" " " "count"
--   u   ""
--       and before any of these, if it is blocked, "!" "until, 16" "!"
--   l   a sorted set: moments, scored by the number of the last unit taken then;
--       "-" the number of the last unit forgotten, as −1 − that; "!" a block, as −its moment.
--       Told as {block, units that count, newest moment; when the units were taken that leave first for one
--       more to fit, and for the cost; and the last of all}
--   n   a sorted set: permits, scored by when they lapse;
--       "n" how many units are out, as −that; "!" a block, as −its moment.
--       Told as {block, units that are out}

taking = ARGV[1] == '1'
local at = 2
for i = 1, #KEYS do
  if ARGV[at] == 'b' then
    bucket(i, at + 1)
    at = at + 7
  else
    at = other(i, ARGV[at], at + 1)
    if elsewhen then
      reply[3] = '2'
      return reply
    end
  end
end

if passes and taking then
  reply[3] = '1'
  for i = 1, #KEYS do
    local write = writes[i]
    if type(write) == 'string' then
      call('SET', KEYS[i], write, 'PXAT', format('%.0f', math.ceil(ends[i] / 1000)))
    elseif write then
      write()
    end
  end
end
return reply
