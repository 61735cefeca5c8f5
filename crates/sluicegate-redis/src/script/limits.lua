-- Limits: when a cost is admitted, and what is written then. See `step.rs` and the files of the algorithms in sluicegate-core. A
-- moment that is unknown is nil.

local function sliding_enter(s, now, cost, from)
  if cost > s.a then return nil end
  local first, second, third = sliding_followed(s, now)
  local index, into, current, previous, ahead = windows(s, first, second, third, now + from)
  if ahead > 0 then index, into, previous = index + ahead, 0, s.a end
  while true do
    local spare = s.a - current - cost
    local entry = spare >= 0 and into or s.b
    if spare >= 0 and previous > spare then
      entry = floor((previous - spare - 1) * s.b / previous) + 1
    end
    if entry < s.b then return at_least(from, (index * s.b + at_least(entry, into)) * s.c - now) end
    -- The loop ends: after two windows nothing overlaps any more.
    index, into, previous, current = index + 1, 0, current, 0
  end
end

local function fixed_enter(s, now, cost, from)
  if cost > s.a then return nil end
  local start, spent = fixed_current(s, s.first, s.second, now)
  local wanted = floor((now + from - start) / s.b)
  local last, fill = last_window(s, spent)
  local fits = fill + cost <= s.a
  if wanted > last or wanted == last and fits then return from end
  local window = fits and last or last + 1
  return at_least(from, at_most(at_least(window * s.b - (now - start), 0), EXACT - 1))
end

local function algorithm_enter(s, now, cost, from)
  local algorithm = s.algorithm
  if algorithm == BUCKET then
    local weight = cost * s.a
    if weight > s.d then return nil end
    return at_least(from, drained(s, bucket_debt(s, now) + weight - s.d, now))
  end
  if algorithm == STEPPED then
    if cost > s.c then return nil end
    local anchor, spent = refilled(s, s.first, s.second, now)
    local short = spent + cost - s.c
    if short <= 0 then return from end
    return at_least(from, at_most(ceil(short / s.a) * s.b - (now - anchor), EXACT - 1))
  end
  if algorithm == FIXED then return fixed_enter(s, now, cost, from) end
  if algorithm == SLIDING then return sliding_enter(s, now, cost, from) end
  if algorithm == LOG then return log_enter(s, now, cost, from) end
  if s.first + cost <= s.a then return from end
  return nil
end

-- The earliest moment, at least `from` from now, at which the request is admitted.
local function enter(s, now, from)
  if s.ban > 0 then from = at_least(from, banned_for(s, now)) end
  if s.gap > 0 then from = at_least(from, owing(s.gap1, s.gap2, now, 1)) end
  return algorithm_enter(s, now, s.cost, from)
end

-- How long a request that arrives now waits in the limit's own queue, if the limit has one.
local function queued(s, now)
  if not s.queues then return nil end
  return leave(s, now, s.cost)
end

-- How long a request waits in the limit's own queue when the queue is empty.
local function shortest_queue(s)
  if not s.queues then return 0 end
  local ticks = ceil((s.cost * s.a - s.e) / s.b)
  if ticks <= 0 then return 0 end
  return at_most(ticks * s.c, EXACT - 1) - (s.c - 1)
end

-- How long until the window begins that holds a place `wait` ahead. Only windows can tell.
local function window_begins(s, now, wait)
  if s.algorithm == SLIDING then return at_least(wait - (now + wait) % (s.b * s.c), 0) end
  if s.algorithm ~= FIXED then return nil end
  local start = fixed_current(s, s.first, s.second, now)
  return at_most(at_least(start + floor((now + wait - start) / s.b) * s.b - now, 0), EXACT - 1)
end

local function algorithm_books(s, now, wait, another)
  local algorithm, cost = s.algorithm, s.cost
  if algorithm == BUCKET then
    local debt, ahead = bucket_debt(s, now), idle(s, now, wait)
    return (not another or ahead <= at_least(debt, floor(s.d / 2))) and at_least(debt, ahead) + cost * s.a < EXACT - s.d
  end
  if algorithm == STEPPED then
    local anchor, spent = refilled(s, s.first, s.second, now)
    local ahead = dropped(s, anchor, now + wait)
    return (not another or ahead <= at_least(spent, floor(s.c / 2))) and at_least(spent, ahead) + cost <= EXACT / 2
  end
  if algorithm == FIXED then
    local start, spent = fixed_current(s, s.first, s.second, now)
    local earliest = fixed_enter(s, now, cost, 0)
    if not earliest then return false end
    local window = floor((now + wait - start) / s.b)
    return (not another or window == floor((now + earliest - start) / s.b))
      and at_least(spent, window * s.a) + cost <= EXACT / 2
  end
  if algorithm == SLIDING then
    if window_begins(s, now, wait) == 0 then return true end
    local index, _, current, _, ahead = windows(s, s.first, s.second, s.third, now)
    local earliest = sliding_enter(s, now, cost, 0)
    if not earliest then return false end
    local window = floor(floor((now + wait) / s.c) / s.b) - index
    return (ahead > 0 or current <= s.a) and window <= sliding_most_ahead(s, index)
      and (not another or window == floor(floor((now + earliest) / s.c) / s.b) - index)
  end
  if algorithm == LOG then return not another or wait <= floor(s.b / 2) end
  return true
end

-- Whether a place `wait` ahead can be booked.
local function books(s, now, wait, several)
  if wait == 0 then return true end
  if now + wait >= EXACT then return false end
  local another = several
  if several then
    local at = enter(s, now, 0)
    another = not (at and wait <= at_least(queued(s, now) or 0, at))
  end
  -- The gap after the place is a bucket too, and idles as one.
  if another and s.gap > 0 and wait > at_least(owing(s.gap1, s.gap2, now, 1), floor(s.gap / 2)) then return false end
  return algorithm_books(s, now, wait, another)
end

-- Writes the charge into the row. Returns the stamp for the receipt, if the algorithm has one.
local function spend(s, now, wait)
  local algorithm, cost, stamp = s.algorithm, s.cost, nil
  if algorithm == BUCKET then
    local debt = bucket_debt(s, now)
    -- Another limit holds the request back, so the debt begins when the request leaves.
    if wait > leave(s, now, cost) then debt = at_least(debt, idle(s, now, wait)) end
    s.first, s.second = floor(now / s.c), at_most(debt + cost * s.a, EXACT - 1 - s.d)
  elseif algorithm == STEPPED then
    local anchor, spent = refilled(s, s.first, s.second, now)
    s.first = anchor
    s.second = at_most(at_least(spent, dropped(s, anchor, now + wait)) + cost, EXACT / 2)
  elseif algorithm == FIXED then
    local start, spent = fixed_current(s, s.first, s.second, now)
    local window = floor((now + wait - start) / s.b)
    s.first, s.second = start, at_most(at_least(spent, window * s.a) + cost, EXACT / 2)
  elseif algorithm == SLIDING then
    sliding_spend(s, now, cost, wait)
  elseif algorithm == LOG then
    stamp = log_spend(s, now, cost, wait)
  elseif cost > 0 then
    if s.own == 0 then s.second, s.newest = s.d, s.d end
    s.first, s.own, s.newest = s.first + cost, s.own + cost, at_least(s.newest, s.d)
  end
  if s.gap > 0 then
    local debt = at_least(owing(s.gap1, s.gap2, now, 1), wait)
    s.gap1, s.gap2 = now, at_most(debt + s.gap, EXACT - 1 - s.gap)
  end
  s.charged_at, s.by_all = charge_others(s, now, cost)
  return stamp
end

-- Records the refusal, if the limit records refusals.
local function refuse(s, now)
  -- A request that can never be admitted was not too fast: a slower one would be refused as well.
  if s.never then return end
  if s.ban > 0 then
    s.dirty = true
    if banned_for(s, now) > 0 then
      s.refused = at_most(s.refused + s.cost, EXACT - 1)
    else
      local since, count, refused = now, 0, 0
      if struck_for(s, now) > 0 then since, count, refused = s.strike1, s.strike2, s.refused end
      s.refused = at_most(refused + s.cost, EXACT - 1)
      if count + 1 < s.after then
        s.strike1, s.strike2 = since, count + 1
      else
        local interval = enter(s, now, 0) or 0
        s.strike1, s.strike2 = 0, 0
        s.ban1, s.ban2 = now, at_most(interval + s.ban, EXACT - 1)
      end
    end
  end
  if not s.count_refused then return end
  if s.algorithm == LOG then
    log_record(s, now, s.cost)
    s.dirty = true
  elseif s.algorithm == SLIDING then
    sliding_record(s, now, s.cost)
    s.dirty = true
  end
end

