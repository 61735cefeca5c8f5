-- Like `lease.lua`, for a limit that is carried over. Tokens are taken out of the account of its numbers, and charged to all other
-- accounts. The second key holds the bucket's debt after the last lease, and the numbers of its account.
local now, least, most, waited, fill, largest, at = unpack('<dddddd', ARGV[1])
now = clock(now)
local s = limit(KEYS[1], ARGV[1], at)
local malformed = load(s, now)
if malformed then return redis.error_reply(malformed) end
meet(s, now, true)
tidy(s, now)

local taken, retry = 0, -1
local first, second, size = s.first, s.second, 1
local left, over
if s.algorithm == BUCKET then
  first, second, size = floor(now / s.c), bucket_debt(s, now), s.a
  left = floor(at_least(s.d - second, 0) / size)
  if fill > 0 then
    local missing, half = floor((fill - second) / size), waited + floor((left - waited) / 2)
    if missing > most then most = at_most(missing, largest) end
    most = at_least(at_most(most, half), waited)
  end
  if least * size <= s.d then over = drained(s, second + least * size - s.d, now) end
else
  first, second = fixed_current(s, s.first, s.second, now)
  left = at_least(s.a - second, 0)
  if least <= s.a then
    local last, spent = last_window(s, second)
    if spent + least > s.a then last = last + 1 end
    over = last * s.b - (now - first)
  end
end

local charged_at, by_all = 0, false
if left >= least then
  taken, retry = at_most(left, most), 0
  s.first, s.second = first, second + taken * size
  charged_at, by_all = charge_others(s, now, taken)
elseif over then
  retry = at_most(over, EXACT - 1)
end
if taken > 0 or s.dirty then store(s, fresh_in(s, now), now) end
-- Tokens that were waited for are spent already, and may be given back.
if taken > waited and s.algorithm == BUCKET then
  local expiry = at_least(ceil(algorithm_fresh_in(s, now) / 1000), soonest)
  -- Tokens that were leased by other numbers may be valid for longer.
  expiry = at_least(expiry, call('PTTL', KEYS[2]))
  call('SET', KEYS[2], pack('<dddddd', s.first, s.second, s.n1, s.n2, s.n3, s.n4), 'PX', expiry)
end
-- Limits that share the row may ban.
local is_banned = banned_for(s, now) > 0
return pack('<ddddd', taken, retry, now, s.first, s.second)
  .. pack('<dBB', charged_at, by_all and 1 or 0, is_banned and 1 or 0)
