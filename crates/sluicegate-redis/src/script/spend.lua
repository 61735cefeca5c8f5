-- Spends from plain limits: two words, no ban, no gap, no log, no queue, no patience. Each key is a request
-- of its own, decided after the one before it; what goes wrong with one is its own answer. Equal keys stand
-- side by side.
-- Straight-line, for speed: most decisions are made here. See `Limit::step` in sluicegate-core.
local args, call, unpack, pack = ARGV[1], redis.pcall, struct.unpack, struct.pack
local floor, ceil, frexp, sub, format = math.floor, math.ceil, math.frexp, string.sub, string.format
local now, place = unpack('<d', args)
-- A test may stop its clock, but the server's clock goes on, so rows must not expire meanwhile.
local soonest = 3600000
if now < 0 then
  soonest = 1
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end

local count, answers = #KEYS, {}
-- The rows, read with one MGET unless all keys are equal. MGET answers nil for a value that is not a string too, so a nil is read
-- again with GET, which reports the error.
local found = KEYS[1] ~= KEYS[count] and call('MGET', _G.unpack(KEYS))
-- How many of the following requests have the same cost and limit.
local alike, cost, algorithm, a, b, c, d = 0
local words, answer_words
-- A bucket drains `part` of its second word in each `step` microseconds, beginning at its first word times `tick`.
local part, step, tick
-- The current row. Requests with the same key read it once and write it once. `from` is the first of these requests; `expires` is
-- when the row has recovered, once it has to be written.
local row, wrong, from, expires
local first, second, third
local found_first, found_second
-- For a concurrency limit: the entries of other holders, the latest time at which one of them lapses, and this process's own
-- entry: the amount, the turn of its first part, and its newest turn. See `rows.lua`.
local others, latest, own, birth, newest, is_changed
local key, following = nil, KEYS[1]
for i = 1, count do
  if alike == 0 then
    alike, cost, algorithm, a, b, c, d, place = unpack('<ddddddd', args, place)
    words, answer_words = '<dd', '<BddBdd'
    if algorithm == 4 then words, answer_words = '<dI4I4', '<BddBdI4I4' end
    part, step, tick = b, c, c
    if algorithm == 2 then part, step, tick = a, b, 1 end
  end
  alike = alike - 1
  if following ~= key then
    key, from, expires, wrong = following, i, false, false
    first, second, third = 0, 0, 0
    row = found and found[i] or call('GET', key)
    if row then
      if row.err then
        wrong = row
      elseif #row ~= 16 and (algorithm ~= 6 or (#row - 16) % 48 ~= 0) then
        wrong = redis.error_reply('BADROW ' .. key .. ' holds ' .. #row .. ' bytes, not 16')
      else
        first, second, third = unpack(words, row)
        if algorithm == 4 then
          second, third = third, second
        else
          third = 0
        end
        if (first + second) % 1 ~= 0 or first < 0 or second < 0 or first + second >= 18014398509481984 then
          wrong = redis.error_reply('BADROW ' .. key .. ' holds something else than a count')
        end
        found_first, found_second = first, second
      end
    end
    if algorithm == 6 then
      others, latest, own, birth, newest, is_changed = '', 0, 0, 0, 0, false
      if row and not wrong then
        -- Older versions wrote only the two words.
        local before = #row == 16 and first or 0
        first = before
        if before > 0 then
          others, latest, is_changed = pack('<dddddd', 0, before, 0, 0, now + b, b), now + b, true
        end
        for i = 17, #row, 48 do
          local holder, held, since, turn, lapses, lease = unpack('<dddddd', row, i)
          local sum = holder + held + since + turn + lapses + lease
          if not (sum % 1 == 0 and sum < 54043195528445952) or held < 1 or lease < 1 then
            wrong = redis.error_reply('BADROW ' .. key .. ' holds something else than holders')
            break
          end
          if holder == c then
            own, birth, newest, first = held, since, turn, first + held
          elseif lapses > now then
            local entry = sub(row, i, i + 47)
            if lapses - now > lease then
              -- The clock has stepped back.
              lapses, is_changed = now + lease, true
              entry = pack('<dddddd', holder, held, since, turn, lapses, lease)
            end
            others, first = others .. entry, first + held
            if lapses > latest then latest = lapses end
          end
        end
      end
    end
  end
  following = KEYS[i + 1]

  if wrong then
    answers[i] = wrong
  else
    -- When the request is admitted, counted from now: 0 for at once, false for never. If it is at once, the words become those to
    -- be written, and `fresh` says when they have recovered. If the clock has stepped back behind the words, they follow it.
    local at, fresh, followed = false, 0, false

    if algorithm == 1 then
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
          at = ceil(over / b) * c - into
          if at >= 9007199254740992 then at = 9007199254740991 end
        end
      end
      if at == 0 then
        debt = second
      end
      if debt > 0 then fresh = ceil(debt / b) * c - into end

    elseif algorithm == 2 then
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
          at = ceil(short / a) * b - (now - anchor)
          if at >= 9007199254740992 then at = 9007199254740991 end
        end
      end
      if spent > 0 then fresh = ceil(spent / a) * b - (now - anchor) end

    elseif algorithm == 3 then
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

    elseif algorithm == 4 then
      -- A sliding window: a count, b ticks in a window, c tick. The words are the window's index, the
      -- current count and the previous one.
      local most = floor(4503599627370496 / b)
      if most > 4227858431 then most = 4227858431 end
      local ticks = floor(now / c)
      local index = floor(ticks / b)
      local into = ticks - index * b
      local current, previous = second, third
      -- Above AHEAD, the previous count is a number of full windows, and the current count that of the window after them.
      local ahead = third - 4227858432
      if ahead > 0 then
        if index > first then ahead = ahead - (index - first) end
        if ahead > 0 then
          previous = 0
        elseif ahead == 0 then
          previous = a
        else
          previous, current = ahead == -1 and current or 0, 0
        end
        if index < first then
          local longest = floor(9007199254740992 / (b * c)) - index - 3
          if longest < 0 then longest = 0 end
          if ahead > longest then ahead = longest end
          first, third, followed = index, ahead > 0 and 4227858432 + ahead or 0, true
        end
      elseif index == first + 1 then
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
        if ahead > 0 then window, begin, before = index + ahead, 0, a end
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
          -- The loop ends: after two windows nothing overlaps any more.
          window, begin, before, here = window + 1, 0, here, 0
        end
        if at == 0 then
          current = current + cost
          if current > most then current = most end
          if previous > most then previous = most end
          first, second, third = index, current, previous
        end
      end
      if ahead < 0 then ahead = 0 end
      if current > 0 then
        fresh = (index + ahead + 2) * b * c - now
      elseif previous > 0 or ahead > 0 then
        fresh = (index + ahead + 1) * b * c - now
      end

    else
      -- Concurrency: a count, b lease, c holder, d turn. A place is held until it is given back, or until the holder's lease ends
      -- without being renewed.
      if cost <= a and first + cost <= a then
        at, first = 0, first + cost
        if cost > 0 then
          if own == 0 then birth, newest = d, d end
          own = own + cost
          if d > newest then newest = d end
        end
      end
      second, followed = birth, is_changed
      if first > 0 then fresh = latest - now end
      if own > 0 and fresh < b then fresh = b end
    end

    local answer
    if at == 0 then
      answer = pack(answer_words, 1, 0, now, 1, first, algorithm == 4 and third or second, second)
    else
      -- Nobody can tell when a held place is given back. Any other cost that has no moment is too large for the limit.
      local never = algorithm ~= 6 or cost > a
      answer = pack(answer_words, 0, at or never and -2 or -1, now, 3, first, algorithm == 4 and third or second, second)
    end
    answers[i] = answer
    if at == 0 or followed then
      expires = fresh
      -- The next request with this key begins with an empty row.
      if fresh <= 0 then first, second, third = 0, 0, 0 end
    end

    if expires and following ~= key then
      local written = 0
      if expires > 0 then
        -- A row's expiry follows from its words, so the words that were read tell when the old row expires. If the new row
        -- expires at the same time, which is the common case, SETRANGE keeps the expiry. To make that common, a bucket's row
        -- expires at the first multiple of a power of two after it has recovered. The power is at most the time in which the debt
        -- drains.
        local lifetime, stays, content = expires, false, sub(answer, 19)
        if algorithm < 3 then
          local ends, worth = now + expires, now + expires - first * tick
          if row and soonest == 1 then
            local was = ceil(found_second / part) * step
            local grid, until_then = was / frexp(was) / 2, found_first * tick + was
            stays = worth >= grid and worth < grid + grid
              and ends + -ends % grid == until_then + -until_then % grid
          end
          if not stays then lifetime = expires + -ends % (worth / frexp(worth) / 2) end
        elseif algorithm < 5 then
          stays = row and soonest == 1 and first == found_first and found_second > 0
        end
        -- The answer ends with the words of the row.
        if algorithm == 6 then
          content = content .. others
          if own > 0 then content = content .. pack('<dddddd', c, own, birth, newest, now + b, b) end
        end
        if stays then
          written = call('SETRANGE', key, '0', content)
        else
          lifetime = ceil(lifetime / 1000)
          if lifetime < soonest then lifetime = soonest end
          written = call('SET', key, content, 'PX', format('%.0f', lifetime))
        end
      elseif row then
        written = call('DEL', key)
      end
      if type(written) == 'table' and written.err then
        for j = from, i do answers[j] = written end
      end
    end
  end
end
if count == 1 then return answers[1] end
return answers
