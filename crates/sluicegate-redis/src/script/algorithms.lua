-- Algorithms: what is spent of a row, and when the row has recovered. Each one is also a file of its name in
-- sluicegate-core. The numbers of an algorithm are, in order
--   bucket: a unit, b drain, c tick, d cap, e free       stepped: a amount, b every, c cap
--   fixed: a count, b period, c from first               sliding: a count, b ticks in a window, c tick
--   concurrent: a count, b lease, c holder, d turn
-- The words of a row are called first and second. In a sliding window, first is the index of the window, second
-- the current count, and third the previous count, or AHEAD and the number of full windows.

-- A bucket's debt at `ticks`. If the clock has stepped back, nothing drains.
local function owing(last, debt, ticks, drain)
  local passed = ticks - last
  if passed <= 0 then return debt end
  return at_least(debt - passed * drain, 0)
end

local function bucket_debt(s, now)
  return owing(s.first, s.second, floor(now / s.c), s.b)
end

-- The microseconds until `ticks` ticks have passed.
local function until_tick(s, ticks, now)
  if ticks <= 0 then return 0 end
  return at_most(ticks * s.c, EXACT - 1) - now % s.c
end

-- The microseconds until `over` has drained.
local function drained(s, over, now)
  return until_tick(s, ceil(over / s.b), now)
end

-- The ticks that pass during `wait`.
local function ticks_of(s, now, wait)
  return floor((now + wait) / s.c) - floor(now / s.c)
end

-- What would drain during `wait`. A product beyond EXACT is inexact, but is only compared with the bound.
local function idle(s, now, wait)
  return ticks_of(s, now, wait) * s.b
end

-- When a request that arrives now may leave.
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

-- How many tokens have been added by `at`.
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

-- The last window with anything spent in it, and how much is spent in it.
local function last_window(s, spent)
  local last = floor(at_least(spent - 1, 0) / s.a)
  return last, spent - last * s.a
end

-- The window's index, the position in it, its current and previous count, and how many windows are full, beginning with this one.
-- If there are any, the current count is that of the window after them.
local function windows(s, first, second, third, now)
  local ticks = floor(now / s.c)
  local index = floor(ticks / s.b)
  local into = ticks - index * s.b
  if third > AHEAD then
    local left = third - AHEAD - at_least(index - first, 0)
    if left > 0 then return index, into, second, 0, left end
    -- Of the account of other numbers, the count is unknown: the last full window stays one.
    if left == 0 and s.a == 0 then return index - 1, into, second, 0, 1 end
    if left == 0 then return index, into, second, s.a, 0 end
    if left == -1 then return index, into, 0, second, 0 end
    return index, into, 0, 0, 0
  end
  if index < first then return index, into, second + third, 0, 0 end
  if index == first then return index, into, second, third, 0 end
  if index == first + 1 then return index, into, 0, second, 0 end
  return index, into, 0, 0, 0
end

-- The bound for counts that keeps the products exact.
local function sliding_most(s)
  return at_most(floor(EXACT / 2 / s.b), AHEAD - 1)
end

-- How many windows can be full so that the end of the last is an exact time.
local function sliding_most_ahead(s, index)
  return at_most(at_least(floor(EXACT / (s.b * s.c)) - index - 3, 0), 4294967295 - AHEAD)
end

-- The words of these counts.
local function sliding_words(s, index, current, previous, ahead)
  local bound = sliding_most(s)
  ahead = at_most(ahead, sliding_most_ahead(s, index))
  return index, at_most(current, bound), ahead > 0 and AHEAD + ahead or at_most(previous, bound)
end

local function sliding_followed(s, now)
  if s.first * s.b * s.c <= now then return s.first, s.second, s.third end
  local index, _, current, previous, ahead = windows(s, s.first, s.second, s.third, now)
  return sliding_words(s, index, current, previous, ahead)
end

-- Charges the cost in the window of a place `wait` ahead. The windows before it count as full from then on.
local function sliding_spend(s, now, cost, wait)
  local index, _, current, previous, ahead = windows(s, s.first, s.second, s.third, now)
  local window = floor(floor((now + wait) / s.c) / s.b) - index
  if window > ahead then current, ahead = 0, window end
  s.first, s.second, s.third = sliding_words(s, index, current + cost, previous, ahead)
end

-- Charges what has been spent already. What exceeds the count is taken from the windows that follow.
local function sliding_force(s, now, cost)
  local index, _, current, previous, ahead = windows(s, s.first, s.second, s.third, now)
  -- Refused attempts, or what other numbers allowed, keep out for one more window, as they do alone.
  if ahead == 0 and current > s.a then current = s.a + at_most(current - s.a, s.a) end
  current = current + cost
  if ahead > 0 or current > s.a then
    local full = floor(at_least(current - 1, 0) / s.a)
    current, ahead = current - full * s.a, ahead + full
  end
  s.first, s.second, s.third = sliding_words(s, index, current, previous, ahead)
end

-- Counts an attempt that was refused. While later windows are spent already, it fills the last of them.
local function sliding_record(s, now, cost)
  local index, _, current, previous, ahead = windows(s, s.first, s.second, s.third, now)
  local after = current + cost
  if ahead > 0 then after = at_most(after, at_least(current, s.a)) end
  s.first, s.second, s.third = sliding_words(s, index, after, previous, ahead)
end

-- How much of a sliding window is spent. A full window is more than any count.
local function sliding_spent(s, now)
  local _, into, current, previous, ahead = windows(s, s.first, s.second, s.third, now)
  if ahead > 0 then return AHEAD end
  return current + floor(previous * (s.b - into) / s.b)
end

-- Converts a debt from `from` units per token to `to` units per token. A fraction of a token is rounded up.
local function rescaled(debt, from, to)
  local whole = floor(debt / from)
  local rest, scaled, over = debt - whole * from, 0, 0
  if rest * to < EXACT then return whole * to + ceil(rest * to / from) end
  -- The product does not fit a double, so this is a long division, bit by bit of `to`, that keeps the remainder apart.
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

-- Accounts of other numbers in a row: see `carry.rs` in sluicegate-core.
local ACCOUNTS = 7

-- A copy of the row with other values for the fields named.
local function with_fields(s, row)
  return setmetatable(row, { __index = s })
end

-- Adjusts the row to a clock that stepped back, by its algorithm.
local function follow(s, now)
  local algorithm, first = s.algorithm, s.first
  if algorithm == BUCKET then
    s.first = at_most(first, floor(now / s.c))
  elseif algorithm == STEPPED then
    s.first = at_most(first, now)
  elseif algorithm == FIXED then
    if now < first then s.first, s.second = fixed_current(s, first, s.second, now) end
  elseif algorithm == SLIDING then
    s.first, s.second, s.third = sliding_followed(s, now)
  end
  return s.first ~= first
end

-- Adjusts the gap and the ban to a clock that stepped back.
local function tidy_words(s, now)
  local gap1, ban1, strike1 = s.gap1, s.ban1, s.strike1
  if s.gap > 0 or s.carried then s.gap1 = at_most(gap1, now) end
  if s.ban > 0 or s.carried then s.ban1, s.strike1 = at_most(ban1, now), at_most(strike1, now) end
  local shut1 = s.shut1
  s.shut1 = at_most(shut1, now)
  if s.gap1 ~= gap1 or s.ban1 ~= ban1 or s.strike1 ~= strike1 or s.shut1 ~= shut1 then
    s.dirty = true
  end
end

-- Adjusts the row to a clock that stepped back, and drops entries of a log that count no more.
local function tidy(s, now)
  if s.algorithm == LOG then log_tidy(s, now) end
  if follow(s, now) then s.dirty = true end
  for _, other in ipairs(s.accounts) do
    if follow(other, now) then s.dirty = true end
  end
  tidy_words(s, now)
end

-- The rest of the ban.
local function banned_for(s, now)
  return at_least(s.ban2 - at_least(now - s.ban1, 0), 0)
end

-- For how much longer the refusals that were counted towards a ban count.
local function struck_for(s, now)
  if s.after == 0 or s.strike2 == 0 then return 0 end
  return at_least(s.within - at_least(now - s.strike1, 0), 0)
end

local function algorithm_fresh_in(s, now)
  local algorithm = s.algorithm
  if algorithm == BUCKET then return drained(s, bucket_debt(s, now), now) end
  if algorithm == STEPPED then
    local anchor, spent = refilled(s, s.first, s.second, now)
    if spent == 0 then return 0 end
    return at_most(ceil(spent / s.a) * s.b - (now - anchor), EXACT - 1)
  end
  if algorithm == FIXED then
    local start, spent = fixed_current(s, s.first, s.second, now)
    if spent == 0 then return 0 end
    return at_most(at_least((last_window(s, spent) + 1) * s.b - (now - start), 0), EXACT - 1)
  end
  if algorithm == SLIDING then
    local index, _, current, previous, ahead = windows(s, s.first, s.second, s.third, now)
    if current > 0 then return (index + ahead + 2) * s.b * s.c - now end
    if previous > 0 or ahead > 0 then return (index + ahead + 1) * s.b * s.c - now end
    return 0
  end
  if algorithm == LOG then return log_fresh_in(s, now) end
  if s.first == 0 then return 0 end
  return at_least(s.latest - now, s.own > 0 and s.b or 0)
end

-- For how much longer a new account begins with at least `owed` spent.
local function shut_for(s, now)
  return at_least(s.shut2 - at_least(now - s.shut1, 0), 0)
end

-- The microseconds until the row equals an empty one, by the numbers of every account in it. `front` is the account in the row's
-- own words, if that is not this limit's.
local function fresh_in(s, now, front)
  local longest = at_least(algorithm_fresh_in(front or s, now), shut_for(s, now))
  for _, other in ipairs(s.accounts) do longest = at_least(longest, algorithm_fresh_in(other, now)) end
  if s.gap > 0 or s.carried then longest = at_least(longest, owing(s.gap1, s.gap2, now, 1)) end
  return at_least(at_least(longest, banned_for(s, now)), struck_for(s, now))
end

-- What is spent in another account, in this limit's words, up to this limit's capacity; and whether receipts of the one are valid
-- in the other.
local function taken_over(s, other, now)
  local algorithm, a, b, c = s.algorithm, s.a, s.b, s.c
  if algorithm == BUCKET then
    local debt = bucket_debt(other, now)
    local fits = ceil(debt / other.a) <= s.d / a
    return floor(now / c), fits and rescaled(debt, other.a, a) or s.d, 0, false
  end
  if algorithm == STEPPED then
    local anchor, spent = refilled(other, other.first, other.second, now)
    return anchor + b > now and anchor or now, at_most(spent, c), 0, false
  end
  if algorithm == FIXED then
    local start, spent = fixed_current(other, other.first, other.second, now)
    local begun = start + b > now and start or now
    if c == 0 then begun = floor(now / b) * b end
    local same = other.b == b and other.c == c and spent <= a and spent <= other.a
    return begun, at_most(spent, a), 0, same
  end
  return floor(floor(now / c) / b), at_most(sliding_spent(other, now), s.a), 0, false
end

-- How many tokens are spent in an account, the rest of one rounded up.
local function spent_of(algorithm, other, now)
  if algorithm == BUCKET then return ceil(bucket_debt(other, now) / other.a) end
  if algorithm == STEPPED or algorithm == FIXED then
    local current = algorithm == FIXED and fixed_current or refilled
    local _, spent = current(other, other.first, other.second, now)
    return spent
  end
  return sliding_spent(other, now)
end

-- The words of an account with these tokens spent, or everything if that is less.
local function spent_up_to_all(s, now, tokens)
  local algorithm = s.algorithm
  if algorithm == BUCKET then return floor(now / s.c), at_most(tokens * s.a, s.d), 0 end
  if algorithm == STEPPED then return now, at_most(tokens, s.c), 0 end
  if algorithm == FIXED then
    local start = fixed_current(s, 0, 0, now)
    return start, at_most(tokens, s.a), 0
  end
  return floor(floor(now / s.c) / s.b), at_most(tokens, s.a), 0
end

-- Begins an account that takes over what the others have spent. `front`, the account in the row's own words, joins the others.
local function begin(s, front, now)
  local since = now
  for _, other in ipairs(s.accounts) do since = at_least(since, other.since) end
  -- Later than every charge that is not taken over in full.
  since = at_most(at_least(since, front.since) + 1, EXACT - 1)
  local first, second, third, same = taken_over(s, front, now)
  local begun = same and front.since or since
  for _, other in ipairs(s.accounts) do
    local another, spent, before, alike = taken_over(s, other, now)
    if spent > second then
      first, second, third = another, spent, before
      begun = alike and other.since or since
    end
  end
  if shut_for(s, now) > 0 then
    local another, spent, before = spent_up_to_all(s, now, s.owed)
    if spent > second then
      first, second, third, begun = another, spent, before, since
    end
  end
  -- An account that has recovered is kept while there is room.
  local kept, full = {}, #s.accounts == ACCOUNTS
  for _, other in ipairs(s.accounts) do
    if not full or algorithm_fresh_in(other, now) > 0 then kept[#kept + 1] = other end
  end
  local own = algorithm_fresh_in(front, now)
  local joins = #kept < ACCOUNTS or own > 0
  if #kept == ACCOUNTS and joins then
    local ends, at = nil, 1
    for i, other in ipairs(kept) do
      local recovered = algorithm_fresh_in(other, now)
      if not ends or recovered < ends then ends, at = recovered, i end
    end
    local gone = front
    if ends <= own then gone = table.remove(kept, at) else joins = false end
    local before = shut_for(s, now) > 0 and s.owed or 0
    s.owed = at_least(before, spent_of(s.algorithm, gone, now))
    s.shut1, s.shut2 = now, at_least(shut_for(s, now), at_most(ends, own))
  end
  if joins then kept[#kept + 1] = front end
  s.accounts, s.first, s.second, s.third, s.since = kept, first, second, third, begun
end

-- The numbers that tell this limit's account apart from the others.
local function own_numbers(s)
  local algorithm = s.algorithm
  if algorithm == BUCKET then return s.a, s.b, s.c, s.d end
  if algorithm == STEPPED then return s.a, s.b, 0, s.c end
  if algorithm == FIXED then return s.a, s.b, s.c, 0 end
  return 0, s.b, s.c, 0
end

-- Moves the account of this limit's numbers into the row's own words. If there is none, begins one if `begins`. Returns whether
-- there is one.
local function meet(s, now, begins)
  if not s.carried or s.algorithm == LOG or s.algorithm == CONCURRENT then return true end
  local n1, n2, n3, n4 = own_numbers(s)
  local own = s.n1 == n1 and s.n2 == n2 and s.n3 == n3 and s.n4 == n4
  if own and #s.accounts == 0 then return true end
  local front
  if s.n2 > 0 then
    front = account(s.algorithm, s.first, s.second, s.third, s.n1, s.n2, s.n3, s.n4, s.since)
    -- Redis may have forgotten such a row already, so it is treated as forgotten in either case.
    if begins and fresh_in(s, now, front) == 0 then
      s.accounts, s.shut1, s.shut2, s.owed = {}, 0, 0, 0
      if not own then front, s.first, s.second, s.third = nil, 0, 0, 0 end
    end
  end
  if own then return true end
  if not front then
    if begins then s.n1, s.n2, s.n3, s.n4, s.since = n1, n2, n3, n4, now end
    return begins
  end
  for i, other in ipairs(s.accounts) do
    if other.n1 == n1 and other.n2 == n2 and other.n3 == n3 and other.n4 == n4 then
      s.accounts[i] = front
      s.first, s.second, s.third, s.since = other.first, other.second, other.third, other.since
      s.n1, s.n2, s.n3, s.n4 = n1, n2, n3, n4
      return true
    end
  end
  if not begins then return false end
  begin(s, front, now)
  s.n1, s.n2, s.n3, s.n4, s.dirty = n1, n2, n3, n4, true
  return true
end

-- Charges the other accounts with what this account admitted, up to their capacity. Returns what the receipt needs: when it was
-- charged, and whether every account took all of it.
local function charge_others(s, now, cost)
  if not s.carried or s.algorithm == LOG or s.algorithm == CONCURRENT then return 0, false end
  if shut_for(s, now) > 0 then s.owed = at_most(s.owed + cost, EXACT - 1) end
  local took_all = true
  for _, other in ipairs(s.accounts) do
    local algorithm, after, bound = s.algorithm, nil, nil
    if algorithm == SLIDING then
      sliding_spend(other, now, cost, 0)
    elseif algorithm == BUCKET then
      local debt = bucket_debt(other, now)
      after, bound = debt + cost * other.a, other.d
      other.first, other.second = floor(now / other.c), at_least(at_most(after, bound), debt)
    else
      local start, spent
      if algorithm == STEPPED then
        start, spent = refilled(other, other.first, other.second, now)
        bound = other.c
      else
        start, spent = fixed_current(other, other.first, other.second, now)
        bound = other.a
      end
      after = spent + cost
      other.first, other.second = start, at_least(at_most(after, bound), spent)
    end
    if after and after > bound then
      took_all = false
      -- Whether an earlier charge was taken in full is unknown from here on.
      other.since = at_most(at_least(now, other.since) + 1, EXACT - 1)
    end
  end
  return at_least(now, s.since), took_all
end

