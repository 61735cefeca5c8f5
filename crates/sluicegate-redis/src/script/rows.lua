-- Rows: the state of one key under one limit, read into a table and written back.
--
-- A narrow row has two words, 16 bytes. A wide row has five more: two of the gap, two of the ban, and the cost refused during the
-- ban. If refusals are counted towards a ban, two more follow: when the counting began, and the count. A carried row has these
-- two, the four numbers that its account was written with, and when the account began. Once other numbers have accounts too, three
-- words follow: from when and for how long a new account begins with something spent, and how much. After them comes each other
-- account: its two words, four numbers, and when it began. A log has a head of nine words (eleven if refusals are counted), then
-- an entry of two words for each stamp. The second word of a sliding window is two counts of 32 bits, the previous one first; or AHEAD and a number of full windows,
-- and the count of the window after them.
--
-- The row of a concurrency limit ends with an entry of six words for each process that holds something: the process's number, the
-- amount held, the turn in which it took the first of it, its newest turn, when the entry lapses unless it is renewed, and the
-- length of the lease. The first word of the row is the sum of the amounts. The second word is unused.
local call, floor, ceil, pack, unpack = redis.call, math.floor, math.ceil, struct.pack, struct.unpack

-- Every number is below this bound, so that a double holds it exactly.
local EXACT = 9007199254740992
-- Above this, the previous count of a sliding window is a number of full windows.
local AHEAD = 4227858432
local ENTRY, HOLDER = 16, 48
-- The bytes of a carried row with one account, of the words that come before further accounts, and of each further account.
local OWN, SHUT, ACCOUNT = 112, 24, 56
local BUCKET, STEPPED, FIXED, SLIDING, LOG, CONCURRENT = 1, 2, 3, 4, 5, 6

local function at_most(number, bound)
  return number < bound and number or bound
end

local function at_least(number, bound)
  return number > bound and number or bound
end

-- The shortest expiry of a row, in milliseconds.
local soonest = 1

-- The clock: the server's, or a test's. A test may stop its clock, but the server's clock goes on, so rows must not expire
-- meanwhile.
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
  s.algorithm, s.a, s.b, s.c, s.d, s.e, s.gap, s.ban, s.option, at = unpack('<ddddddddd', args, at)
  local option = s.option
  s.queues = option % 2 == 1
  s.count_refused = floor(option / 2) % 2 == 1
  s.carried = floor(option / 4) % 2 == 1
  s.shadow = floor(option / 8) % 2 == 1
  s.after, s.within = 0, 0
  s.never = option >= 32
  if option % 32 >= 16 then s.after, s.within, at = unpack('<dd', args, at) end
  s.wide = s.gap > 0 or s.ban > 0 or s.carried
  s.strikes = s.after > 0 or s.carried
  s.head_size = s.strikes and 88 or 72
  return s, at
end

local function fresh_row(s)
  s.first, s.second, s.third = 0, 0, 0
  s.gap1, s.gap2, s.ban1, s.ban2, s.refused = 0, 0, 0, 0, 0
  s.strike1, s.strike2, s.n1, s.n2, s.n3, s.n4, s.since = 0, 0, 0, 0, 0, 0, 0
  s.accounts, s.shut1, s.shut2, s.owed = {}, 0, 0, 0
  s.seen, s.total, s.head, s.len, s.dropped = 0, 0, 0, 0, 0
  s.others, s.latest, s.own, s.newest = '', 0, 0, 0
end

local function are_counts(...)
  for i = 1, select('#', ...) do
    local number = select(i, ...)
    if not (number >= 0 and number < EXACT and number % 1 == 0) then return false end
  end
  return true
end

-- An account of a carried row, as a row with the numbers of that account.
local function account(algorithm, first, second, third, n1, n2, n3, n4, since)
  local row = { algorithm = algorithm, first = first, second = second, third = third,
    n1 = n1, n2 = n2, n3 = n3, n4 = n4, since = since, a = n1, b = n2, c = n3, d = n4, e = n4 }
  if algorithm == STEPPED then row.c = n4 end
  return row
end

-- Whether calculations with the account's numbers are safe: no negative or broken number, no division by zero.
local function are_numbers(algorithm, s)
  if not are_counts(s.first, s.second, s.n1, s.n2, s.n3, s.n4, s.since) then return false end
  if algorithm == CONCURRENT then return true end
  local divides_by_first = algorithm ~= SLIDING
  local divides_by_third = algorithm == BUCKET or algorithm == SLIDING
  return s.n2 > 0 and (s.n1 > 0 or not divides_by_first) and (s.n3 > 0 or not divides_by_third)
end

-- The two words of the algorithm.
local function words(s)
  if s.algorithm == SLIDING then return pack('<dI4I4', s.first, s.third, s.second) end
  return pack('<dd', s.first, s.second)
end

local function load_words(algorithm, row, at)
  if algorithm ~= SLIDING then
    local first, second, next_at = unpack('<dd', row, at)
    return first, second, 0, next_at
  end
  local first, third, second, next_at = unpack('<dI4I4', row, at)
  return first, second, third, next_at
end

-- Reads the accounts of other numbers. Returns false if they are malformed.
local function load_accounts(s, row, at)
  if at > #row or s.algorithm == CONCURRENT then return true end
  s.shut1, s.shut2, s.owed, at = unpack('<ddd', row, at)
  while at <= #row do
    local first, second, third, n1, n2, n3, n4, since
    first, second, third, at = load_words(s.algorithm, row, at)
    n1, n2, n3, n4, since, at = unpack('<ddddd', row, at)
    local other = account(s.algorithm, first, second, third, n1, n2, n3, n4, since)
    if not are_numbers(s.algorithm, other) then return false end
    s.accounts[#s.accounts + 1] = other
  end
  return are_counts(s.shut1, s.shut2, s.owed)
end

local function wrong(s, what)
  return 'BADROW ' .. s.key .. ' holds ' .. what
end

local function load_log(s)
  local bytes = call('STRLEN', s.key)
  if bytes == 0 then return end
  local head_size, at = s.head_size, nil
  if bytes < head_size or (bytes - head_size) % ENTRY ~= 0 then return wrong(s, bytes .. ' bytes, no log') end
  local head = call('GETRANGE', s.key, 0, head_size - 1)
  s.seen, s.total, s.head, s.len, s.gap1, s.gap2, s.ban1, s.ban2, s.refused, at =
    unpack('<ddddddddd', head)
  if s.strikes then s.strike1, s.strike2 = unpack('<dd', head, at) end
  s.stored = true
  if not are_counts(s.seen, s.total, s.head, s.len, s.gap1, s.gap2, s.ban1, s.ban2, s.refused)
    or not are_counts(s.strike1, s.strike2)
    or (s.head + s.len) * ENTRY > bytes - head_size then
    return wrong(s, 'something else than a log')
  end
end

-- Reads the holders, from `at` on in the row. A holder whose lease is over holds nothing, except for this process, which is
-- alive. Here b is its lease, c its number, d its turn; `second` is the turn in which it took the first of what it holds.
local function load_holders(s, row, at, now)
  -- Older versions wrote no entries of processes.
  local before = at > #row and s.first or 0
  s.first, s.second, s.dirty = before, 0, before > 0
  if before > 0 then
    s.others, s.latest = pack('<dddddd', 0, before, 0, 0, now + s.b, s.b), now + s.b
  end
  for i = at, #row, HOLDER do
    local holder, held, since, turn, lapses, lease = unpack('<dddddd', row, i)
    if not are_counts(holder, held, since, turn, lapses, lease) or held < 1 or lease < 1 then
      return wrong(s, 'something else than holders')
    end
    if holder == s.c then
      s.own, s.second, s.newest, s.first = held, since, turn, s.first + held
    elseif lapses > now then
      local entry = string.sub(row, i, i + HOLDER - 1)
      if lapses - now > lease then
        -- The clock has stepped back.
        lapses, s.dirty = now + lease, true
        entry = pack('<dddddd', holder, held, since, turn, lapses, lease)
      end
      s.others, s.first, s.latest = s.others .. entry, s.first + held, at_least(s.latest, lapses)
    end
  end
end

-- Reads the row. Returns a message if the row is malformed.
local function load(s, now)
  fresh_row(s)
  if s.algorithm == LOG then return load_log(s) end
  local row = call('GET', s.key)
  if not row then return end
  local size = s.carried and OWN or s.strikes and 72 or s.wide and 56 or 16
  local more, fits = #row - size, #row == size
  if s.algorithm == CONCURRENT then
    fits = more >= 0 and more % HOLDER == 0
  elseif s.carried and more >= SHUT then
    fits = (more - SHUT) % ACCOUNT == 0
  end
  if not fits then return wrong(s, #row .. ' bytes, not ' .. size) end
  local at
  s.first, s.second, s.third, at = load_words(s.algorithm, row, 1)
  if s.wide then s.gap1, s.gap2, s.ban1, s.ban2, s.refused, at = unpack('<ddddd', row, at) end
  if s.strikes then s.strike1, s.strike2, at = unpack('<dd', row, at) end
  if s.carried then s.n1, s.n2, s.n3, s.n4, s.since, at = unpack('<ddddd', row, at) end
  s.stored = true
  if not are_counts(s.first, s.second, s.gap1, s.gap2, s.ban1, s.ban2, s.refused)
    or s.strikes and not are_counts(s.strike1, s.strike2)
    or s.carried and not (are_numbers(s.algorithm, s) and load_accounts(s, row, at)) then
    return wrong(s, 'something else than counts')
  end
  if s.algorithm == CONCURRENT then return load_holders(s, row, size + 1, now) end
end

-- The further words of a wide row, and of the head of a log.
local function more_words(s)
  local row = pack('<ddddd', s.gap1, s.gap2, s.ban1, s.ban2, s.refused)
  if s.strikes then row = row .. pack('<dd', s.strike1, s.strike2) end
  return row
end

local function log_head(s)
  return pack('<dddd', s.seen, s.total, s.head, s.len) .. more_words(s)
end

local function log_place(s, index)
  return s.head_size + ENTRY * (s.head + index)
end

local function store_log(s, expiry)
  if s.head >= 64 and s.head > s.len then
    -- More than half is dropped entries: reclaims their bytes.
    local live = s.len > 0 and call('GETRANGE', s.key, log_place(s, 0), log_place(s, s.len) - 1) or ''
    s.head, s.chunk, s.newest_at = 0, nil, nil
    call('SET', s.key, log_head(s) .. live, 'PX', expiry)
    return
  end
  call('SETRANGE', s.key, 0, log_head(s))
  call('PEXPIRE', s.key, expiry)
end

-- How long to keep a bucket's row that has recovered after `fresh_in` microseconds. It is a little longer, so that `spend.lua`
-- can work the expiry out from the words alone.
local function lifetime(s, fresh_in)
  local tick, worth = 1, ceil(s.second / s.a) * s.b
  if s.algorithm == BUCKET then tick, worth = s.c, ceil(s.second / s.b) * s.c end
  return fresh_in + -(s.first * tick + worth) % (worth / math.frexp(worth) / 2)
end

-- The numbers that an account was written with, and when it began.
local function account_numbers(s)
  return pack('<ddddd', s.n1, s.n2, s.n3, s.n4, s.since)
end

-- Writes the row, which has recovered after `fresh_in` microseconds.
local function store(s, fresh_in, now)
  if fresh_in <= 0 then
    if s.stored then call('DEL', s.key) end
    return
  end
  if s.algorithm <= STEPPED and not s.wide then fresh_in = lifetime(s, fresh_in) end
  local expiry = at_least(ceil(fresh_in / 1000), soonest)
  if s.algorithm == LOG then return store_log(s, expiry) end
  local row = words(s)
  if s.wide then row = row .. more_words(s) end
  if s.carried then row = row .. account_numbers(s) end
  if #s.accounts > 0 or s.shut2 > 0 then
    row = row .. pack('<ddd', s.shut1, s.shut2, s.owed)
    for _, other in ipairs(s.accounts) do row = row .. words(other) .. account_numbers(other) end
  end
  if s.algorithm == CONCURRENT then
    row = row .. s.others
    if s.own > 0 then row = row .. pack('<dddddd', s.c, s.own, s.second, s.newest, now + s.b, s.b) end
  end
  call('SET', s.key, row, 'PX', expiry)
end

