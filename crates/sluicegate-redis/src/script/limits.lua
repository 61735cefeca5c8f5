-- Limits: when a cost may come in, and what is written when it does. See `step.rs` and the shapes' files
-- in sluicegate-core. Where a moment cannot be told, it is nil.

local function sliding_enter(s, now, cost, from)
  if cost > s.a then return nil end
  local first, second, third = sliding_followed(s, now)
  local index, into, current, previous = windows(s, first, second, third, now + from)
  while true do
    local spare = s.a - current - cost
    local entry = spare >= 0 and into or s.b
    if spare >= 0 and previous > spare then
      entry = floor((previous - spare - 1) * s.b / previous) + 1
    end
    if entry < s.b then return least(from, (index * s.b + least(entry, into)) * s.c - now) end
    -- Ends: two windows on, nothing overlaps any more.
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
  return least(from, most(least(window * s.b - (now - start), 0), EXACT - 1))
end

local function shape_enter(s, now, cost, from)
  local shape = s.shape
  if shape == BUCKET then
    local weight = cost * s.a
    if weight > s.d then return nil end
    return least(from, drained(s, bucket_debt(s, now) + weight - s.d, now))
  end
  if shape == STEPPED then
    if cost > s.c then return nil end
    local anchor, spent = refilled(s, s.first, s.second, now)
    local short = spent + cost - s.c
    if short <= 0 then return from end
    return least(from, most(ceil(short / s.a) * s.b - (now - anchor), EXACT - 1))
  end
  if shape == FIXED then return fixed_enter(s, now, cost, from) end
  if shape == SLIDING then return sliding_enter(s, now, cost, from) end
  if shape == LOG then return log_enter(s, now, cost, from) end
  if s.first + cost <= s.a then return from end
  return nil
end

-- The earliest moment, `from` or more from now, at which a request may come in.
local function enter(s, now, from)
  if s.ban > 0 then from = least(from, banned_for(s, now)) end
  if s.gap > 0 then from = least(from, owing(s.gap1, s.gap2, now, 1)) end
  return shape_enter(s, now, s.cost, from)
end

-- How long a request that comes in now waits in the limit's own queue, if it has one.
local function queued(s, now)
  if not s.queues then return nil end
  return leave(s, now, s.cost)
end

-- How long a request waits in the limit's own queue even where it finds that empty.
local function shortest_queue(s)
  if not s.queues then return 0 end
  local ticks = ceil((s.cost * s.a - s.e) / s.b)
  if ticks <= 0 then return 0 end
  return most(ticks * s.c, EXACT - 1) - (s.c - 1)
end

-- Until the window begins in which a place `wait` ahead stands, where there are windows.
local function window_begins(s, now, wait)
  if s.shape == SLIDING then return least(wait - (now + wait) % (s.b * s.c), 0) end
  if s.shape ~= FIXED then return nil end
  local start = fixed_current(s, s.first, s.second, now)
  return most(least(start + floor((now + wait - start) / s.b) * s.b - now, 0), EXACT - 1)
end

local function shape_books(s, now, wait, another)
  local shape, cost = s.shape, s.cost
  if shape == BUCKET then
    local debt = bucket_debt(s, now)
    local kept = least(idle(s, now, wait) - debt, 0)
    return (not another or kept <= floor(s.d / 2)) and debt + kept + cost * s.a < EXACT - s.d
  end
  if shape == STEPPED then
    local anchor, spent = refilled(s, s.first, s.second, now)
    local kept = least(dropped(s, anchor, now + wait) - spent, 0)
    return (not another or kept <= floor(s.c / 2)) and spent + kept + cost <= EXACT / 2
  end
  if shape == FIXED then
    local start, spent = fixed_current(s, s.first, s.second, now)
    local earliest = fixed_enter(s, now, cost, 0)
    if not earliest then return false end
    local window = floor((now + wait - start) / s.b)
    return (not another or window == floor((now + earliest - start) / s.b))
      and least(spent, window * s.a) + cost <= EXACT / 2
  end
  if shape == SLIDING then return window_begins(s, now, wait) == 0 end
  return true
end

-- Whether a place `wait` ahead can be written down.
local function books(s, now, wait, several)
  if wait == 0 then return true end
  if now + wait >= EXACT then return false end
  local another = several
  if several then
    local at = enter(s, now, 0)
    another = not (at and wait <= least(queued(s, now) or 0, at))
  end
  return shape_books(s, now, wait, another)
end

-- Writes the charge into the row, and returns the words of its mark.
local function spend(s, now, wait)
  local shape, cost, stamp = s.shape, s.cost, nil
  if shape == BUCKET then
    local debt = bucket_debt(s, now)
    -- Another limit holds the request back: the debt begins when it leaves.
    if wait > leave(s, now, cost) then debt = least(debt, idle(s, now, wait)) end
    s.first, s.second = floor(now / s.c), most(debt + cost * s.a, EXACT - 1 - s.d)
  elseif shape == STEPPED then
    local anchor, spent = refilled(s, s.first, s.second, now)
    s.first = anchor
    s.second = most(least(spent, dropped(s, anchor, now + wait)) + cost, EXACT / 2)
  elseif shape == FIXED then
    local start, spent = fixed_current(s, s.first, s.second, now)
    local window = floor((now + wait - start) / s.b)
    s.first, s.second = start, most(least(spent, window * s.a) + cost, EXACT / 2)
  elseif shape == SLIDING then
    sliding_spend(s, now, cost)
  elseif shape == LOG then
    stamp = log_spend(s, now, cost, wait)
  elseif cost > 0 then
    if s.own == 0 then s.second, s.newest = s.d, s.d end
    s.first, s.own, s.newest = s.first + cost, s.own + cost, least(s.newest, s.d)
  end
  if s.gap > 0 then
    local debt = least(owing(s.gap1, s.gap2, now, 1), wait)
    s.gap1, s.gap2 = now, most(debt + s.gap, EXACT - 1 - s.gap)
  end
  s.charged_at, s.by_all = charge_others(s, now, cost)
  return stamp
end

-- Writes down that this limit refused, where that is recorded.
local function refuse(s, now)
  -- No attempt to go faster: no slower one would be admitted either.
  if s.never then return end
  if s.ban > 0 then
    s.dirty = true
    if banned_for(s, now) > 0 then
      s.refused = most(s.refused + s.cost, EXACT - 1)
    else
      local since, count, refused = now, 0, 0
      if struck_for(s, now) > 0 then since, count, refused = s.strike1, s.strike2, s.refused end
      s.refused = most(refused + s.cost, EXACT - 1)
      if count + 1 < s.after then
        s.strike1, s.strike2 = since, count + 1
      else
        local interval = enter(s, now, 0) or 0
        s.strike1, s.strike2 = 0, 0
        s.ban1, s.ban2 = now, most(interval + s.ban, EXACT - 1)
      end
    end
  end
  if not s.count_refused then return end
  if s.shape == LOG then
    log_record(s, now, s.cost)
    s.dirty = true
  elseif s.shape == SLIDING then
    sliding_spend(s, now, s.cost)
    s.dirty = true
  end
end

