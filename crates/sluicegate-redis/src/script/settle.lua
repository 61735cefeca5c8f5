-- Changes the cost of a charge to a smaller or larger one. See `Limit::settle` in sluicegate-core.
local now, cost, spent, first, second, third, gap1, gap2, flags, since, charged_at, at =
  unpack('<ddddddddddd', ARGV[1])
now = clock(now)
local s = limit(KEYS[1], ARGV[1], at)
local malformed = load(s, now)
if malformed then return redis.error_reply(malformed) end
-- A forgotten key has nothing to give back, but more may be charged to it.
if not s.stored and spent <= cost then return 0 end
local banned, by_all = flags % 2, flags >= 2
-- The account does not know a charge that was made before the account began.
local known = meet(s, now, spent > cost)
if spent <= cost and (not known or s.since > since) then return 0 end

-- The bucket's last lease: the tick, the debt then, and the numbers of its account if the limit is carried over. There is none if
-- its debt has drained.
local lease = KEYS[2] and s.algorithm == BUCKET and call('GET', KEYS[2])
if lease and #lease ~= (s.carried and 48 or 16) then lease = false end

-- The debt of the bucket after its last lease, as far as it has not drained. Nothing may be given back below it, because
-- processes still spend the leased tokens. The second value is whether this charge is the last lease.
local function leased()
  if not lease then return 0 end
  local tick, debt = unpack('<dd', lease)
  return owing(tick, debt, floor(now / s.c), s.b), tick == first and debt == second
end

-- Whether leased tokens keep a charge to a carried bucket from being given back. The last lease tells nothing about other accounts,
-- from which tokens may be leased too.
local function is_kept(back)
  if not lease or not s.carried then return false end
  if #s.accounts > 0 or s.shut2 > 0 then return true end
  if string.sub(lease, 17) ~= pack('<dddd', s.n1, s.n2, s.n3, s.n4) then return true end
  local kept, is_last = leased()
  local debt, own = bucket_debt(s, now), owing(first, second, floor(now / s.c), s.b)
  return not is_last and at_most(at_most(own, back * s.a), debt) > at_least(debt - kept, 0)
end
if spent <= cost and is_kept(cost - spent) then return 0 end

local function force(more)
  local algorithm = s.algorithm
  if algorithm == BUCKET then
    s.first, s.second = floor(now / s.c), at_most(bucket_debt(s, now) + more * s.a, EXACT - 1 - s.d)
  elseif algorithm == STEPPED then
    s.first, s.second = refilled(s, s.first, s.second, now)
    s.second = at_most(s.second + more, EXACT / 2)
  elseif algorithm == FIXED then
    s.first, s.second = fixed_current(s, s.first, s.second, now)
    s.second = at_most(s.second + more, EXACT / 2)
  elseif algorithm == SLIDING then
    sliding_force(s, now, more)
  elseif algorithm == LOG then
    log_force(s, now, more)
  else
    -- A concurrency limit is not charged more: a response cannot turn out to have been two.
    return
  end
  charge_others(s, now, more)
  s.dirty = true
end

-- Gives back the part of this charge that has not drained. Requests that wait behind it have booked their places on its account,
-- so only the last in line can give its place back.
local function bucket_give(back)
  local debt = bucket_debt(s, now)
  if debt > s.e and not (s.first == first and s.second == second) then return end
  local own = at_most(owing(first, second, floor(now / s.c), s.b), back * s.a)
  local given, kept, is_last = at_most(own, debt), leased()
  if is_last then
    local expiry = at_least(call('PTTL', KEYS[2]), soonest)
    local debt_left = pack('<dd', floor(now / s.c), at_least(kept - given, 0))
    call('SET', KEYS[2], debt_left .. string.sub(lease, 17), 'PX', expiry)
  else
    given = at_most(given, at_least(debt - kept, 0))
  end
  s.second = s.second - given
end

local function stepped_give(back)
  local anchor, left = refilled(s, s.first, s.second, now)
  local same_phase = anchor >= first and (anchor - first) % s.b == 0
  if not same_phase then return end
  if left > s.c and not (s.first == first and s.second == second) then return end
  local _, own = refilled(s, first, second, now)
  s.first, s.second = anchor, at_least(left - at_most(own, back), 0)
end

local function fixed_give(back)
  local start, left = fixed_current(s, s.first, s.second, now)
  local own = last_window(s, second)
  local last, fill = last_window(s, left)
  if first + own * s.b == start + last * s.b then
    s.first, s.second = start, left - at_most(back, fill)
  end
end

-- Gives back to the window in which the charge was made: the last one, or the one before if it is over.
local function sliding_give(s, charged, back)
  local index, _, current, previous, ahead = windows(s, s.first, s.second, s.third, now)
  if index + ahead == charged then
    current = at_least(current - back, 0)
  elseif index == charged + 1 and ahead == 0 then
    previous = at_least(previous - back, 0)
  else
    return
  end
  s.first, s.second, s.third = sliding_words(s, index, current, previous, ahead)
end

-- Gives back to the other accounts what they took of this charge, as if it had begun to drain at once.
local function give_others(back)
  if not by_all then return end
  for _, other in ipairs(s.accounts) do
    local algorithm = s.algorithm
    if other.since > since then
      algorithm = nil
    elseif algorithm == BUCKET then
      local ticks = at_least(floor(now / other.c) - floor(charged_at / other.c), 0)
      local left = at_least(cost * other.a - ticks * other.b, 0)
      local debt = bucket_debt(other, now)
      other.first, other.second = floor(now / other.c), debt - at_most(at_most(left, back * other.a), debt)
    elseif algorithm == STEPPED then
      local anchor, taken = refilled(other, other.first, other.second, now)
      local left = at_least(cost - ceil(at_least(anchor - charged_at, 0) / other.b) * other.a, 0)
      other.first, other.second = anchor, taken - at_most(at_most(left, back), taken)
    elseif algorithm == FIXED then
      local start, taken = fixed_current(other, other.first, other.second, now)
      if charged_at >= start and taken <= other.a then
        other.first, other.second = start, at_least(taken - back, 0)
      end
    elseif algorithm == SLIDING then
      sliding_give(other, floor(floor(charged_at / other.c) / other.b), back)
    end
    if algorithm then s.dirty = true end
  end
end

local function gap_give()
  local debt = owing(s.gap1, s.gap2, now, 1)
  if debt > s.gap and not (s.gap1 == gap1 and s.gap2 == gap2) then return end
  s.gap2 = s.gap2 - at_most(at_most(owing(gap1, gap2, now, 1), s.gap), debt)
end

-- Whether the charge still counted at that moment.
local function counted(at_moment)
  if s.algorithm == LOG then return first + s.b > at_moment end
  local charged = with_fields(s, { first = first, second = second, third = third })
  return algorithm_fresh_in(charged, at_moment) > 0
end

local function give(back)
  if s.algorithm == BUCKET then
    bucket_give(back)
  elseif s.algorithm == STEPPED then
    stepped_give(back)
  elseif s.algorithm == FIXED then
    fixed_give(back)
  elseif s.algorithm == SLIDING then
    sliding_give(s, first + at_least(third - AHEAD, 0), back)
  elseif s.algorithm == LOG then
    log_give(s, first, now, back)
  else
    -- Only from what this process has held since then. After a lease has lapsed, others may hold the place.
    if s.second == second then
      local given = at_most(back, s.own)
      s.first, s.own = s.first - given, s.own - given
    end
    return
  end
  give_others(back)
  if spent == 0 and s.gap > 0 then gap_give() end
  local is_banned = banned_for(s, now) > 0
  local on_record = is_banned or struck_for(s, now) > 0
  if on_record and banned == 0 and counted(is_banned and s.ban1 or s.strike1) then
    -- Without this charge, all refused requests would have been admitted.
    s.refused = at_least(s.refused - back, 0)
    if s.refused == 0 then s.ban1, s.ban2, s.strike1, s.strike2 = 0, 0, 0, 0 end
  end
end

local function numbers()
  return pack('<ddddd', s.first, s.second, s.third, s.gap1, s.gap2)
    .. pack('<ddddd', s.ban1, s.ban2, s.refused, s.strike1, s.strike2)
end

tidy(s, now)
local before = numbers()
if spent > cost then force(spent - cost) else give(cost - spent) end
if not s.dirty and numbers() == before then return 0 end
store(s, fresh_in(s, now), now)
return 1
