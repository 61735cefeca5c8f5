-- Shapes: what is spent of a row, and when that is over. Each as the file of its name in tollgate-core.
-- The numbers of a shape are, in order
--   bucket: a unit, b drain, c tick, d cap, e free       stepped: a amount, b every, c cap
--   fixed: a count, b period, c from first               sliding: a count, b ticks in a window, c tick
--   concurrent: a count
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
local function rescaled(debt, from, to, bound)
  local whole = floor(debt / from)
  local rest, scaled, over = debt - whole * from, 0, 0
  if rest * to < EXACT then return most(whole * to + ceil(rest * to / from), bound) end
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
  return most(whole * to + scaled, bound)
end

-- The most that is carried over: what it takes to be owed for 142 years.
local function longest_debt(amount, every)
  return most(amount * floor(EXACT / 2 / every), EXACT / 2)
end

-- Makes the row one of this limit's numbers, if others have written it.
local function carry(s, now)
  local shape, a, b, c = s.shape, s.a, s.b, s.c
  if not s.carried or shape == LOG or shape == CONCURRENT then return end
  if shape == STEPPED then c = 0 elseif shape == SLIDING then a = 0 end
  if s.n1 == a and s.n2 == b and s.n3 == c then return end
  local old = { a = s.n1, b = s.n2, c = s.n3, first = s.first, second = s.second }
  s.n1, s.n2, s.n3 = a, b, c
  if old.b == 0 then
    s.since = now
    return
  end
  local same = false
  if shape == BUCKET then
    local bound = most(least(longest_debt(b, c), s.d), EXACT - 1 - s.d)
    s.first, s.second = floor(now / c), rescaled(bucket_debt(old, now), old.a, a, bound)
  elseif shape == STEPPED then
    local anchor, spent = refilled(old, s.first, s.second, now)
    s.first = anchor + b > now and anchor or now
    s.second = most(spent, least(longest_debt(a, b), s.c))
  elseif shape == FIXED then
    local start, spent = fixed_current(old, s.first, s.second, now)
    same = old.b == b and old.c == c and spent <= most(old.a, a)
    s.first, s.second = start + b > now and start or now, most(spent, longest_debt(a, b))
    if c == 0 then s.first = floor(now / b) * b end
  else
    local bound = sliding_most(s)
    same = old.b * old.c == b * c
    if same then
      s.second, s.third = most(s.second, bound), most(s.third, bound)
    else
      local _, into, current, previous = windows(old, s.first, s.second, s.third, now)
      s.first, s.third = floor(floor(now / c) / b), 0
      s.second = most(current + floor(previous * (old.b - into) / old.b), bound)
    end
  end
  s.dirty = true
  if not same then s.since = most(least(now, s.since + 1), EXACT - 1) end
end

-- Follows a clock that stepped back, and drops what a log holds in vain.
local function tidy(s, now)
  local shape, first = s.shape, s.first
  if shape == BUCKET then
    s.first = most(first, floor(now / s.c))
  elseif shape == STEPPED then
    s.first = most(first, now)
  elseif shape == FIXED then
    if now < first then s.first, s.second = fixed_current(s, first, s.second, now) end
  elseif shape == SLIDING then
    s.first, s.second, s.third = sliding_followed(s, now)
  elseif shape == LOG then
    log_tidy(s, now)
  end
  local gap1, ban1, strike1 = s.gap1, s.ban1, s.strike1
  if s.gap > 0 or s.carried then s.gap1 = most(gap1, now) end
  if s.ban > 0 or s.carried then s.ban1, s.strike1 = most(ban1, now), most(strike1, now) end
  if s.first ~= first or s.gap1 ~= gap1 or s.ban1 ~= ban1 or s.strike1 ~= strike1 then
    s.dirty = true
  end
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
  return s.first > 0 and HELD or 0
end

-- The microseconds until the row equals none.
local function fresh_in(s, now)
  local shape = shape_fresh_in(s, now)
  if s.gap > 0 or s.carried then shape = least(shape, owing(s.gap1, s.gap2, now, 1)) end
  return least(least(shape, banned_for(s, now)), struck_for(s, now))
end

