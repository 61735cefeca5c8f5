-- Spends from one plain limit: two words, no ban, no gap, no log, no queue, no patience.
-- Straight-line, for speed: most decisions are made here. See `Limit::step` in tollgate-core.
local now, cost, shape, a, b, c, d = struct.unpack('<ddddddd', ARGV[1])
local key, call, floor = KEYS[1], redis.call, math.floor
-- While the clock of a test stands still, the server's goes on: no row may expire by that.
local soonest = 3600000
if now < 0 then
  soonest = 1
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end

local format = shape == 4 and '<dI4I4' or '<dd'
local first, second, third = 0, 0, 0
local row = call('GET', key)
if row then
  if #row ~= 16 then
    return redis.error_reply('BADROW ' .. key .. ' holds ' .. #row .. ' bytes, not 16')
  end
  first, second, third = struct.unpack(format, row)
  if shape == 4 then
    second, third = third, second
  else
    third = 0
  end
  if (first + second) % 1 ~= 0 or first < 0 or second < 0 or first + second >= 18014398509481984 then
    return redis.error_reply('BADROW ' .. key .. ' holds something else than a count')
  end
end

-- When it may come in, from now: false for never. Where that is at once, the words become those that
-- are to be written, and `fresh` says when they are as good as none. Where the clock has stepped back
-- behind them, they follow.
local at, fresh, followed = false, 0, false

if shape == 1 then
  -- A bucket: a unit, b drain, c tick, d cap.
  local ticks, into = now, 0
  if c ~= 1 then
    ticks = floor(now / c)
    into = now - ticks * c
  end
  local debt = second
  if ticks >= first then
    debt = second - (ticks - first) * b
    if debt < 0 then debt = 0 end
  else
    first, followed = ticks, true
  end
  local weight = cost * a
  if weight <= d then
    local after = debt + weight
    local over = after - d
    if over <= 0 then
      at, first, second = 0, ticks, after
    else
      at = math.ceil(over / b) * c - into
      if at >= 9007199254740992 then at = 9007199254740991 end
    end
  end
  if at == 0 then
    debt = second
  end
  if debt > 0 then fresh = math.ceil(debt / b) * c - into end

elseif shape == 2 then
  -- A bucket refilled in steps: a amount, b every, c cap.
  if first > now then
    first, followed = now, true
  end
  local anchor, spent = now, second
  if spent > 0 then
    local steps = floor((now - first) / b)
    spent = second - steps * a
    if spent > 0 then
      anchor = first + steps * b
    else
      spent = 0
    end
  end
  if cost <= c then
    local short = spent + cost - c
    if short <= 0 then
      at, first, second = 0, anchor, spent + cost
      spent = second
    else
      at = math.ceil(short / a) * b - (now - anchor)
      if at >= 9007199254740992 then at = 9007199254740991 end
    end
  end
  if spent > 0 then fresh = math.ceil(spent / a) * b - (now - anchor) end

elseif shape == 3 then
  -- A fixed window: a count, b period, c whether it begins with the first request.
  local start, spent = now, second
  if c == 0 then start = floor(now / b) * b end
  if now < first then
    first, followed = start, true
  elseif spent > 0 then
    local passed = floor((now - first) / b)
    spent = second - passed * a
    if spent > 0 then
      start = first + passed * b
    else
      spent = 0
    end
  end
  local last = 0
  if spent > 0 then last = floor((spent - 1) / a) end
  if cost <= a then
    if spent - last * a + cost > a then last = last + 1 end
    if last == 0 then
      at, first, second = 0, start, spent + cost
      spent = second
    else
      at = last * b - (now - start)
      if at < 0 then at = 0 end
      if at >= 9007199254740992 then at = 9007199254740991 end
    end
  end
  if spent > 0 then fresh = (floor((spent - 1) / a) + 1) * b - (now - start) end

elseif shape == 4 then
  -- A sliding window: a count, b ticks in a window, c tick. The words are the window's index, the
  -- current count and the previous one.
  local most = floor(4503599627370496 / b)
  if most > 4294967295 then most = 4294967295 end
  local ticks = floor(now / c)
  local index = floor(ticks / b)
  local into = ticks - index * b
  local current, previous = second, third
  if index == first + 1 then
    previous, current = current, 0
  elseif index > first then
    previous, current = 0, 0
  elseif index < first then
    previous, current = 0, previous + current
    if current > most then current = most end
    first, second, third, followed = index, current, 0, true
  end
  if cost <= a then
    local window, begin, before, here = index, into, previous, current
    while not at do
      local spare = a - here - cost
      if spare >= 0 then
        local entry = begin
        if before > spare then
          entry = floor((before - spare - 1) * b / before) + 1
        end
        if entry < b then
          if entry < begin then entry = begin end
          at = (window * b + entry) * c - now
          if at < 0 then at = 0 end
        end
      end
      -- Ends: two windows on, nothing overlaps any more.
      window, begin, before, here = window + 1, 0, here, 0
    end
    if at == 0 then
      current = current + cost
      if current > most then current = most end
      if previous > most then previous = most end
      first, second, third = index, current, previous
    end
  end
  if current > 0 then
    fresh = (index + 2) * b * c - now
  elseif previous > 0 then
    fresh = (index + 1) * b * c - now
  end

else
  -- Concurrency: a count. Held until it is given back; but one who has died holds for an hour.
  if cost <= a and first + cost <= a then
    at, first = 0, first + cost
  end
  if first > 0 then fresh = 3600000000 end
end

if at == 0 or followed then
  if fresh > 0 then
    -- A sliding window's previous count stands before the current one.
    local expiry = math.ceil(fresh / 1000)
    if expiry < soonest then expiry = soonest end
    call('SET', key, struct.pack(format, first, shape == 4 and third or second, second), 'PX',
      expiry)
  elseif row then
    call('DEL', key)
  end
end
return struct.pack(shape == 4 and '<BddBdI4I4' or '<BddBdd', at == 0 and 1 or 0, at or -1, now,
  at == 0 and 1 or 3, first, shape == 4 and third or second, second)
