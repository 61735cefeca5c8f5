-- Shapes: what is spent of a row, and when that is over. Each as the file of its name in tollgate-core.
-- The numbers of a shape are, in order
--   bucket: a unit, b drain, c tick, d cap, e free       stepped: a amount, b every, c cap
--   fixed: a count, b period, c from first               sliding: a count, b ticks in a window, c tick
--   concurrent: a count, b lease, c holder, d turn
-- and the words are called first and second; of a sliding window, first is the window's index, second
-- the current count and third the previous one.

-- A bucket's debt; a clock that stepped back drains nothing.
local function owing(last, debt, ticks, drain)
  local passed = ticks - last
  if passed <= 0 then return debt end
  return least(debt - passed * drain, 0)
end

local function bucket_debt(s, now)
  return owing(s.first, s.second, floor(now / s.c), s.b)
end

-- The microseconds until so many ticks have passed.
local function until_tick(s, ticks, now)
  if ticks <= 0 then return 0 end
  return most(ticks * s.c, EXACT - 1) - now % s.c
end

-- The microseconds until so much has drained.
local function drained(s, over, now)
  return until_tick(s, ceil(over / s.b), now)
end

-- The ticks that pass while one waits.
local function ticks_of(s, now, wait)
  return floor((now + wait) / s.c) - floor(now / s.c)
end

-- What would drain meanwhile. Where that is more than stays exact, it is only asked whether it is.
local function idle(s, now, wait)
  return ticks_of(s, now, wait) * s.b
end

-- When a request that comes in now may leave.
local function leave(s, now, cost)
  local weight = cost * s.a
  if weight > s.d then return 0 end
  return drained(s, bucket_debt(s, now) + weight - s.e, now)
end

local function refilled(s, first, second, now)
  if second == 0 or now < first then return now, second end
  local steps = floor((now - first) / s.b)
  local spent = second - steps * s.a
  if spent <= 0 then return now, 0 end
  return first + steps * s.b, spent
end

-- How many tokens have dropped in by then.
local function dropped(s, anchor, at)
  return floor((at - anchor) / s.b) * s.a
end

local function fixed_current(s, first, second, now)
  local fresh = now
  if s.c == 0 then fresh = floor(now / s.b) * s.b end
  if second == 0 or now < first then return fresh, second end
  local passed = floor((now - first) / s.b)
  local spent = second - passed * s.a
  if spent <= 0 then return fresh, 0 end
  return first + passed * s.b, spent
end

-- The last window with anything spent in it, and how much that is.
local function last_window(s, spent)
  local last = floor(least(spent - 1, 0) / s.a)
  return last, spent - last * s.a
end

-- The window's index, how far into it, and its current and previous count.
local function windows(s, first, second, third, now)
  local ticks = floor(now / s.c)
  local index = floor(ticks / s.b)
  local into = ticks - index * s.b
  if index < first then return index, into, second + third, 0 end
  if index == first then return index, into, second, third end
  if index == first + 1 then return index, into, 0, second end
  return index, into, 0, 0
end

-- No more of refused attempts is counted than keeps the products exact.
local function sliding_most(s)
  return most(floor(EXACT / 2 / s.b), 4294967295)
end

local function sliding_followed(s, now)
  if s.first * s.b * s.c <= now then return s.first, s.second, s.third end
  local index, _, current = windows(s, s.first, s.second, s.third, now)
  return index, most(current, sliding_most(s)), 0
end

local function sliding_spend(s, now, cost)
  local index, _, current, previous = windows(s, s.first, s.second, s.third, now)
  local bound = sliding_most(s)
  s.first, s.second, s.third = index, most(current + cost, bound), most(previous, bound)
end

-- A debt in units of `from` to a token, in units of `to`: what is left of a whole token is rounded up.
local function rescaled(debt, from, to)
  local whole = floor(debt / from)
  local rest, scaled, over = debt - whole * from, 0, 0
  if rest * to < EXACT then return whole * to + ceil(rest * to / from) end
  -- The product is too large for a double: it is divided bit after bit of `to`, and what is over kept apart.
  local bit, left = 1, to
  while bit * 2 <= to do bit = bit * 2 end
  while bit >= 1 do
    scaled, over = scaled * 2, over * 2
    if over >= from then scaled, over = scaled + 1, over - from end
    if left >= bit then
      left, over = left - bit, over + rest
      if over >= from then scaled, over = scaled + 1, over - from end
    end
    bit = bit / 2
  end
  if over > 0 then scaled = scaled + 1 end
  return whole * to + scaled
end

-- Another row in place of this one: what is not named is the same.
local function likewise(s, row)
  return setmetatable(row, { __index = s })
end

-- Whether other numbers have written a carried row: then `old` reads it by them.
local function meet(s, now)
  local shape, a, b, c = s.shape, s.a, s.b, s.c
  if not s.carried or shape == LOG or shape == CONCURRENT then return end
  if shape == STEPPED then c = 0 elseif shape == SLIDING then a = 0 end
  if s.n1 == a and s.n2 == b and s.n3 == c then return end
  if s.n2 == 0 then
    s.n1, s.n2, s.n3, s.since = a, b, c, now
    return
  end
  -- A bucket's debt stays exact with one more cost, whatever the old one holds. How much fits into two counts
  -- is asked of them by the new limit alone.
  local first = shape == SLIDING and s.a or s.n1
  s.old = likewise(s, { a = first, b = s.n2, c = s.n3, d = EXACT / 2 })
end

-- Whether two counts mean the same in these numbers: the windows are as long, and both exact.
local function are_alike(s)
  local bound = sliding_most(s)
  return s.n2 * s.n3 == s.b * s.c and s.second <= bound and s.third <= bound
end

-- The words of a row of other numbers in these, and whether marks still mean what they did; nil where more
-- is spent than fits.
local function converted(s, now)
  local shape, old, a, b, c = s.shape, s.old, s.a, s.b, s.c
  if shape == BUCKET then
    local debt = bucket_debt(old, now)
    if ceil(debt / old.a) > s.d / a then return nil end
    return floor(now / c), rescaled(debt, old.a, a), 0, false
  end
  if shape == STEPPED then
    local anchor, spent = refilled(old, s.first, s.second, now)
    if spent > c then return nil end
    return anchor + b > now and anchor or now, spent, 0, false
  end
  if shape == FIXED then
    local start, spent = fixed_current(old, s.first, s.second, now)
    if spent > a then return nil end
    local begun = start + b > now and start or now
    if c == 0 then begun = floor(now / b) * b end
    return begun, spent, 0, old.b == b and old.c == c and spent <= old.a
  end
  if are_alike(s) then return s.first, s.second, s.third, true end
  local _, into, current, previous = windows(old, s.first, s.second, s.third, now)
  local spent = current + floor(previous * (old.b - into) / old.b)
  if spent > a then return nil end
  return floor(floor(now / c) / b), spent, 0, false
end

-- The row as it would be converted; nil where more is spent than fits.
local function seen(s, now)
  local first, second, third = converted(s, now)
  return first and likewise(s, { first = first, second = second, third = third })
end

-- Makes the row one of this limit's numbers, if others have written it and what is spent fits.
local function convert(s, now)
  if not s.old then return end
  local first, second, third, same = converted(s, now)
  if not first then return end
  local shape = s.shape
  s.first, s.second, s.third = first, second, third
  s.n1, s.n2, s.n3 = shape == SLIDING and 0 or s.a, s.b, shape == STEPPED and 0 or s.c
  s.old, s.dirty = nil, true
  if not same then s.since = most(least(now, s.since + 1), EXACT - 1) end
end

-- The gap and the ban follow a clock that stepped back.
local function tidy_words(s, now)
  local gap1, ban1, strike1 = s.gap1, s.ban1, s.strike1
  if s.gap > 0 or s.carried then s.gap1 = most(gap1, now) end
  if s.ban > 0 or s.carried then s.ban1, s.strike1 = most(ban1, now), most(strike1, now) end
  if s.gap1 ~= gap1 or s.ban1 ~= ban1 or s.strike1 ~= strike1 then s.dirty = true end
end

-- Follows a clock that stepped back, and drops what a log holds in vain.
local function tidy(s, now)
  local shape, first, by = s.shape, s.first, s.old or s
  if shape == BUCKET then
    s.first = most(first, floor(now / by.c))
  elseif shape == STEPPED then
    s.first = most(first, now)
  elseif shape == FIXED then
    if now < first then s.first, s.second = fixed_current(by, first, s.second, now) end
  elseif shape == SLIDING then
    s.first, s.second, s.third = sliding_followed(by, now)
  elseif shape == LOG then
    log_tidy(s, now)
  end
  if s.first ~= first then s.dirty = true end
  tidy_words(s, now)
end

-- How much longer a ban lasts.
local function banned_for(s, now)
  return least(s.ban2 - least(now - s.ban1, 0), 0)
end

-- How much longer the refusals that were counted towards a ban count.
local function struck_for(s, now)
  if s.after == 0 or s.strike2 == 0 then return 0 end
  return least(s.within - least(now - s.strike1, 0), 0)
end

local function shape_fresh_in(s, now)
  local shape = s.shape
  if shape == BUCKET then return drained(s, bucket_debt(s, now), now) end
  if shape == STEPPED then
    local anchor, spent = refilled(s, s.first, s.second, now)
    if spent == 0 then return 0 end
    return most(ceil(spent / s.a) * s.b - (now - anchor), EXACT - 1)
  end
  if shape == FIXED then
    local start, spent = fixed_current(s, s.first, s.second, now)
    if spent == 0 then return 0 end
    return most(least((last_window(s, spent) + 1) * s.b - (now - start), 0), EXACT - 1)
  end
  if shape == SLIDING then
    local index, _, current, previous = windows(s, s.first, s.second, s.third, now)
    if current > 0 then return (index + 2) * s.b * s.c - now end
    if previous > 0 then return (index + 1) * s.b * s.c - now end
    return 0
  end
  if shape == LOG then return log_fresh_in(s, now) end
  if s.first == 0 then return 0 end
  return least(s.latest - now, s.own > 0 and s.b or 0)
end

-- The microseconds until the row equals none, by the numbers that have written it.
local function fresh_in(s, now)
  local shape = shape_fresh_in(s.old or s, now)
  if s.gap > 0 or s.carried then shape = least(shape, owing(s.gap1, s.gap2, now, 1)) end
  return least(least(shape, banned_for(s, now)), struck_for(s, now))
end

