-- Rows: what Redis keeps of one key for one limit, read into a table and written back.
--
-- A narrow row is two words, 16 bytes. A wide one has five more: the gap's two, the ban's two, and what
-- was refused during the ban. A log has a head of nine words, and an entry of two for each stamp after
-- it. A sliding window's second word is two counts of 32 bits, the previous one first.
local call, floor, ceil, pack, unpack = redis.call, math.floor, math.ceil, struct.pack, struct.unpack

-- Every number is below this, so that a double holds it exactly.
local EXACT = 9007199254740992
-- What one who has died still holds of a limit of concurrency, in microseconds: an hour.
local HELD = 3600000000
local HEAD, ENTRY = 72, 16
local BUCKET, STEPPED, FIXED, SLIDING, LOG, CONCURRENT = 1, 2, 3, 4, 5, 6

local function most(number, bound)
  return number < bound and number or bound
end

local function least(number, bound)
  return number > bound and number or bound
end

-- The least that a row is kept, in milliseconds.
local soonest = 1

-- The clock: the server's, unless a test says otherwise. While that one stands still, the server's goes on:
-- no row may expire by it.
local function clock(now)
  if now >= 0 then
    soonest = 3600000
    return now
  end
  local time = call('TIME')
  return time[1] * 1000000 + time[2]
end

-- Reads a limit's numbers from the argument.
local function limit(key, args, at)
  local s = { key = key }
  s.shape, s.a, s.b, s.c, s.d, s.e, s.gap, s.ban, s.option, at = unpack('<ddddddddd', args, at)
  s.queues = s.option % 2 == 1
  s.count_refused = s.option >= 2
  s.wide = s.gap > 0 or s.ban > 0
  return s, at
end

local function fresh_row(s)
  s.first, s.second, s.third = 0, 0, 0
  s.gap1, s.gap2, s.ban1, s.ban2, s.refused = 0, 0, 0, 0, 0
  s.seen, s.total, s.head, s.len, s.dropped = 0, 0, 0, 0, 0
end

local function are_counts(...)
  for i = 1, select('#', ...) do
    local number = select(i, ...)
    if not (number >= 0 and number < EXACT and number % 1 == 0) then return false end
  end
  return true
end

local function wrong(s, what)
  return 'BADROW ' .. s.key .. ' holds ' .. what
end

local function load_log(s)
  local bytes = call('STRLEN', s.key)
  if bytes == 0 then return end
  if bytes < HEAD or (bytes - HEAD) % ENTRY ~= 0 then return wrong(s, bytes .. ' bytes, no log') end
  s.seen, s.total, s.head, s.len, s.gap1, s.gap2, s.ban1, s.ban2, s.refused =
    unpack('<ddddddddd', call('GETRANGE', s.key, 0, HEAD - 1))
  s.stored = true
  if not are_counts(s.seen, s.total, s.head, s.len, s.gap1, s.gap2, s.ban1, s.ban2, s.refused)
    or (s.head + s.len) * ENTRY > bytes - HEAD then
    return wrong(s, 'something else than a log')
  end
end

-- Reads the row, or says what is wrong with it.
local function load(s)
  fresh_row(s)
  if s.shape == LOG then return load_log(s) end
  local row = call('GET', s.key)
  if not row then return end
  local size = s.wide and 56 or 16
  if #row ~= size then return wrong(s, #row .. ' bytes, not ' .. size) end
  local at
  if s.shape == SLIDING then
    s.first, s.third, s.second, at = unpack('<dI4I4', row)
  else
    s.first, s.second, at = unpack('<dd', row)
  end
  if s.wide then s.gap1, s.gap2, s.ban1, s.ban2, s.refused = unpack('<ddddd', row, at) end
  s.stored = true
  if not are_counts(s.first, s.second, s.gap1, s.gap2, s.ban1, s.ban2, s.refused) then
    return wrong(s, 'something else than counts')
  end
end

-- The shape's two words.
local function words(s)
  if s.shape == SLIDING then return pack('<dI4I4', s.first, s.third, s.second) end
  return pack('<dd', s.first, s.second)
end

local function log_head(s)
  return pack('<ddddddddd', s.seen, s.total, s.head, s.len, s.gap1, s.gap2, s.ban1, s.ban2, s.refused)
end

local function log_place(s, index)
  return HEAD + ENTRY * (s.head + index)
end

local function store_log(s, expiry)
  if s.head >= 64 and s.head > s.len then
    -- Most of it has been dropped: the room is reclaimed.
    local live = s.len > 0 and call('GETRANGE', s.key, log_place(s, 0), log_place(s, s.len) - 1) or ''
    s.head, s.chunk, s.newest_at = 0, nil, nil
    call('SET', s.key, log_head(s) .. live, 'PX', expiry)
    return
  end
  call('SETRANGE', s.key, 0, log_head(s))
  call('PEXPIRE', s.key, expiry)
end

-- How long a bucket's row stands that equals none in so many microseconds: see `spend.lua`, which has to
-- be able to tell it from the words.
local function stands(s, fresh_in)
  local tick, worth = 1, ceil(s.second / s.a) * s.b
  if s.shape == BUCKET then tick, worth = s.c, ceil(s.second / s.b) * s.c end
  return fresh_in + -(s.first * tick + worth) % (worth / math.frexp(worth) / 2)
end

-- Writes the row, which equals none in so many microseconds.
local function store(s, fresh_in)
  if fresh_in <= 0 then
    if s.stored then call('DEL', s.key) end
    return
  end
  if s.shape <= STEPPED and not s.wide then fresh_in = stands(s, fresh_in) end
  local expiry = least(ceil(fresh_in / 1000), soonest)
  if s.shape == LOG then return store_log(s, expiry) end
  local row = words(s)
  if s.wide then row = row .. pack('<ddddd', s.gap1, s.gap2, s.ban1, s.ban2, s.refused) end
  call('SET', s.key, row, 'PX', expiry)
end

