-- The sliding log: see `log.rs` in sluicegate-core. Here a is the count, b the period, c the resolution.
--
-- Entries are read and written in place. Dropped entries leave unused bytes at the front, which are reclaimed once they are the
-- larger part. An entry removed from the middle stays, with cost 0.

-- Entries that are read at a time.
local CHUNK = 16

-- The stamp and the cost of an entry, counted from the oldest. The newest entry is cached apart from the chunk, because both ends
-- are read repeatedly.
local function entry(s, index)
  local place = log_place(s, index)
  if place == s.newest_at then return s.newest, s.newest_cost end
  if index > 0 and index == s.len - 1 then
    local bytes = call('GETRANGE', s.key, place, place + ENTRY - 1)
    s.newest_at, s.newest, s.newest_cost = place, unpack('<dd', bytes)
    return s.newest, s.newest_cost
  end
  local at = place - (s.chunk_at or place)
  if not s.chunk or at < 0 or at >= #s.chunk then
    s.chunk, s.chunk_at, at = call('GETRANGE', s.key, place, place + CHUNK * ENTRY - 1), place, 0
  end
  local stamp, cost = unpack('<dd', s.chunk, at + 1)
  return stamp, cost
end

local function write_entries(s, index, bytes)
  local place = log_place(s, index)
  call('SETRANGE', s.key, place, bytes)
  s.stored, s.newest_at = true, nil
  if s.chunk and place < s.chunk_at + #s.chunk then s.chunk = nil end
end

local function drop_oldest(s)
  local _, cost = entry(s, 0)
  s.total, s.head, s.len, s.dropped = s.total - cost, s.head + 1, s.len - 1, s.dropped + 1
end

-- Drops entries without cost from both ends.
local function trim(s)
  while s.len > 0 and select(2, entry(s, 0)) == 0 do drop_oldest(s) end
  while s.len > 0 and select(2, entry(s, s.len - 1)) == 0 do s.len = s.len - 1 end
end

-- The index at which a stamp is, or would be inserted; and its cost, if it is there.
local function find(s, stamp)
  local low, high = 0, s.len
  while low < high do
    local middle = floor((low + high) / 2)
    if entry(s, middle) < stamp then low = middle + 1 else high = middle end
  end
  if low < s.len then
    local found, cost = entry(s, low)
    if found == stamp then return low, cost end
  end
  return low, nil
end

local function insert(s, stamp, cost)
  s.total = s.total + cost
  local at, there = s.len, nil
  if s.len > 0 then
    local newest, newest_cost = entry(s, s.len - 1)
    if newest == stamp then
      at, there = s.len - 1, newest_cost
    elseif newest > stamp then
      at, there = find(s, stamp)
    end
  end
  local bytes = pack('<dd', stamp, cost + (there or 0))
  if not there then
    if at < s.len then
      bytes = bytes .. call('GETRANGE', s.key, log_place(s, at), log_place(s, s.len) - 1)
    end
    s.len = s.len + 1
  end
  write_entries(s, at, bytes)
  if at == s.len - 1 then
    s.newest_at, s.newest, s.newest_cost = log_place(s, at), stamp, cost + (there or 0)
  end
end

-- How far the clock has stepped back since the last write, in whole resolutions.
local function log_back(s, now)
  local back = s.seen - now
  if back <= 0 then return 0 end
  return back - back % s.c
end

local function log_enter(s, now, cost, from)
  if cost > s.a then return nil end
  local back, excess, when, index = log_back(s, now), s.total + cost - s.a, now + from, 0
  while excess > 0 and index < s.len do
    local stamp, spent = entry(s, index)
    index, excess = index + 1, excess - spent
    when = at_least(when, at_least(stamp - back, 0) + s.b)
  end
  return at_most(when - now, EXACT - 1)
end

-- Moves all stamps by that time.
local function log_move(s, time)
  local moved = {}
  for index = 0, s.len - 1 do
    local stamp, cost = entry(s, index)
    moved[index + 1] = pack('<dd', at_least(stamp + time, 0), cost)
  end
  if s.len > 0 then write_entries(s, 0, table.concat(moved)) end
end

local function log_tidy(s, now)
  local back = log_back(s, now)
  if back > 0 then
    log_move(s, -back)
    s.seen, s.dirty = s.seen - back, true
  end
  while s.len > 0 and entry(s, 0) + s.b <= now do drop_oldest(s) end
end

local function log_spend(s, now, cost, wait)
  log_tidy(s, now)
  local stamp = now + wait
  if stamp % s.c > 0 then stamp = stamp - stamp % s.c + s.c end
  -- A cost of 0 adds no entry. Otherwise the log would have no bound.
  if cost > 0 then insert(s, stamp, cost) end
  s.seen = at_least(s.seen, now)
  return stamp
end

-- Charges what has been spent already. What exceeds the count takes the places that become free next: all stamps move on by a
-- period for each whole count of it, and the rest is booked ahead.
local function log_force(s, now, cost)
  log_tidy(s, now)
  local fits = at_most(cost, at_least(s.a - s.total, 0))
  log_spend(s, now, fits, 0)
  local over = cost - fits
  if over == 0 or s.len == 0 then return end
  local newest = entry(s, s.len - 1)
  -- Every stamp stays exact, and a period after it.
  local most = at_least(floor((EXACT - 1 - newest) / s.b) - 3, 0)
  local periods = at_most(floor(over / s.a), most)
  if periods > 0 then log_move(s, periods * s.b) end
  local rest = over - floor(over / s.a) * s.a
  log_spend(s, now, rest, log_enter(s, now, rest, 0))
end

-- Records a refused attempt. Only the newest `count` attempts can make a difference.
local function log_record(s, now, cost)
  -- A cost of 0 adds no entry, so no entry has to be dropped for it.
  if cost == 0 then return end
  cost = at_most(cost, s.a)
  local stamp = now
  if stamp % s.c > 0 then stamp = stamp - stamp % s.c + s.c end
  log_tidy(s, now)
  while s.len > 0 do
    local oldest, spent = entry(s, 0)
    if oldest > stamp or s.total - spent + cost < s.a then break end
    drop_oldest(s)
  end
  trim(s)
  local booked_later = s.len > 0 and entry(s, 0) > stamp
  if not (booked_later and s.total >= s.a) then log_spend(s, now, cost, 0) end
end

local function log_give(s, stamp, now, back)
  log_tidy(s, now)
  local at, cost = find(s, stamp)
  local given = cost and at_most(cost, back) or 0
  if given == 0 then return end
  write_entries(s, at, pack('<dd', stamp, cost - given))
  s.total, s.dirty = s.total - given, true
  trim(s)
end

local function log_remaining(s, now)
  local left, index = s.total, 0
  while index < s.len do
    local stamp, cost = entry(s, index)
    if stamp + s.b > now then break end
    left, index = left - cost, index + 1
  end
  return at_least(s.a - left, 0)
end

local function log_fresh_in(s, now)
  if s.len == 0 then return 0 end
  local newest = entry(s, s.len - 1)
  return at_most(at_least(at_least(newest - log_back(s, now), 0) + s.b - now, 0), EXACT - 1)
end

