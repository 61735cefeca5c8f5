-- Takes as many tokens as fit, from `least` to `most`, out of a plain bucket or fixed window. Out of a bucket, takes more (up to
-- `largest`) if the bucket's debt then reaches `fill`; beyond the tokens that somebody has `waited` for, at most half of the
-- rest. The second key holds the bucket's debt after the last lease.
local now, least, most, waited, fill, largest, algorithm, a, b, c, d = struct.unpack('<ddddddddddd', ARGV[1])
local key, call, floor = KEYS[1], redis.call, math.floor
-- A test may stop its clock, but the server's clock goes on, so rows must not expire meanwhile.
local soonest = 3600000
if now < 0 then
  soonest = 1
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end

local first, second = 0, 0
local row = call('GET', key)
if row then
  if #row ~= 16 then
    return redis.error_reply('BADROW ' .. key .. ' holds ' .. #row .. ' bytes, not 16')
  end
  first, second = struct.unpack('<dd', row)
  if (first + second) % 1 ~= 0 or first < 0 or second < 0 or first + second >= 18014398509481984 then
    return redis.error_reply('BADROW ' .. key .. ' holds something else than a count')
  end
end

local taken, retry, fresh, followed = 0, -1, 0, false

if algorithm == 1 then
  -- A bucket: a unit, b drain, c tick, d cap.
  local ticks = floor(now / c)
  local into = now - ticks * c
  local debt = second
  if ticks >= first then
    debt = second - (ticks - first) * b
    if debt < 0 then debt = 0 end
  else
    first, followed = ticks, true
  end
  local left = 0
  if debt < d then left = floor((d - debt) / a) end
  if fill > 0 then
    local missing, half = floor((fill - debt) / a), waited + floor((left - waited) / 2)
    if missing > most then most = missing < largest and missing or largest end
    if most > half then most = half end
    if most < waited then most = waited end
  end
  if left >= least then
    taken, retry = left < most and left or most, 0
    debt = debt + taken * a
    first, second = ticks, debt
  elseif least * a <= d then
    retry = math.ceil((debt + least * a - d) / b) * c - into
  end
  if debt > 0 then
    -- The row expires by the same rule as in `spend.lua`.
    local worth = math.ceil(debt / b) * c
    fresh = worth - into
    fresh = fresh + -(now + fresh) % (worth / math.frexp(worth) / 2)
  end
else
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
  local left = a - spent
  if left < 0 then left = 0 end
  if left >= least then
    taken, retry = left < most and left or most, 0
    spent = spent + taken
    first, second = start, spent
  elseif least <= a then
    local last = floor((spent - 1) / a)
    if spent - last * a + least > a then last = last + 1 end
    retry = last * b - (now - start)
  end
  if spent > 0 then fresh = (floor((spent - 1) / a) + 1) * b - (now - start) end
end

if retry == 0 or followed then
  if fresh > 0 then
    local expiry = math.ceil(fresh / 1000)
    if expiry < soonest then expiry = soonest end
    call('SET', key, struct.pack('<dd', first, second), 'PX', expiry)
    -- Tokens that were waited for are spent already, and may be given back.
    if taken > waited and algorithm == 1 then
      call('SET', KEYS[2], struct.pack('<dd', first, second), 'PX', expiry)
    end
  elseif row then
    call('DEL', key)
  end
end
if retry >= 9007199254740992 then retry = 9007199254740991 end
return struct.pack('<ddddd', taken, retry, now, first, second)
