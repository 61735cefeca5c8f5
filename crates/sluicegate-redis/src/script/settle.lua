-- Makes a charge into one of less or more. See `Limit::settle` in sluicegate-core.
local now, cost, spent, first, second, third, gap1, gap2, flags, since, charged_at, at =
  unpack('<ddddddddddd', ARGV[1])
now = clock(now)
local s = limit(KEYS[1], ARGV[1], at)
local malformed = load(s, now)
if malformed then return redis.error_reply(malformed) end
-- A key that was forgotten has nothing to be given back, but may yet have more to pay.
if not s.stored and spent <= cost then return 0 end
local banned, by_all = flags % 2, flags >= 2
-- A charge that was made before the account began cannot be told in it.
local known = meet(s, now, spent > cost)
if spent <= cost and (not known or s.since > since) then return 0 end

local function force(more)
  local shape = s.shape
  if shape == BUCKET then
    s.first, s.second = floor(now / s.c), most(bucket_debt(s, now) + more * s.a, EXACT - 1 - s.d)
  elseif shape == STEPPED then
    s.first, s.second = refilled(s, s.first, s.second, now)
    s.second = most(s.second + more, EXACT / 2)
  elseif shape == FIXED then
    s.first, s.second = fixed_current(s, s.first, s.second, now)
    s.second = most(s.second + more, EXACT / 2)
  elseif shape == SLIDING then
    sliding_spend(s, now, more)
  elseif shape == LOG then
    log_spend(s, now, most(more, least(EXACT / 2 - s.total, 0)), 0)
  else
    -- What is held is held: a response cannot turn out to have been two.
    return
  end
  charge_others(s, now, more)
  s.dirty = true
end

-- What the bucket owes for all that was leased out of it, and for what came before: this has to drain as it was
-- told, since processes spend tokens until it has. `true`, if this charge is the last of it.
local function leased()
  local row = KEYS[2] and call('GET', KEYS[2])
  if not row or #row ~= 16 then return 0 end
  local tick, debt = unpack('<dd', row)
  return owing(tick, debt, floor(now / s.c), s.b), tick == first and debt == second
end

-- Gives back what of this charge has not drained. Where others wait behind it, their places were booked
-- on its account, so only the last in line can give its place back.
local function bucket_give(back)
  local debt = bucket_debt(s, now)
  if debt > s.e and not (s.first == first and s.second == second) then return end
  local own = most(owing(first, second, floor(now / s.c), s.b), back * s.a)
  local given, kept, is_last = most(own, debt), leased()
  if is_last then
    local stands = least(call('PTTL', KEYS[2]), soonest)
    call('SET', KEYS[2], pack('<dd', floor(now / s.c), least(kept - given, 0)), 'PX', stands)
  else
    given = most(given, least(debt - kept, 0))
  end
  s.second = s.second - given
end

local function stepped_give(back)
  local anchor, left = refilled(s, s.first, s.second, now)
  local same_phase = anchor >= first and (anchor - first) % s.b == 0
  if not same_phase then return end
  if left > s.c and not (s.first == first and s.second == second) then return end
  local _, own = refilled(s, first, second, now)
  s.first, s.second = anchor, least(left - most(own, back), 0)
end

local function fixed_give(back)
  local start, left = fixed_current(s, s.first, s.second, now)
  local own = last_window(s, second)
  local last, fill = last_window(s, left)
  if first + own * s.b == start + last * s.b then
    s.first, s.second = start, left - most(back, fill)
  end
end

-- Takes back from the window in which it was spent, current or previous.
local function sliding_give(s, charged, back)
  local index, _, current, previous = windows(s, s.first, s.second, s.third, now)
  if index == charged then
    current = least(current - back, 0)
  elseif index == charged + 1 then
    previous = least(previous - back, 0)
  else
    return
  end
  local bound = sliding_most(s)
  s.first, s.second, s.third = index, most(current, bound), most(previous, bound)
end

-- Gives back to the other accounts what they took of this charge, had it begun to drain at once.
local function give_others(back)
  if not by_all then return end
  for _, other in ipairs(s.accounts) do
    local shape = s.shape
    if other.since > since then
      shape = nil
    elseif shape == BUCKET then
      local ticks = least(floor(now / other.c) - floor(charged_at / other.c), 0)
      local left = least(cost * other.a - ticks * other.b, 0)
      local debt = bucket_debt(other, now)
      other.first, other.second = floor(now / other.c), debt - most(most(left, back * other.a), debt)
    elseif shape == STEPPED then
      local anchor, taken = refilled(other, other.first, other.second, now)
      local left = least(cost - ceil(least(anchor - charged_at, 0) / other.b) * other.a, 0)
      other.first, other.second = anchor, taken - most(most(left, back), taken)
    elseif shape == FIXED then
      local start, taken = fixed_current(other, other.first, other.second, now)
      if charged_at >= start and taken <= other.a then
        other.first, other.second = start, least(taken - back, 0)
      end
    elseif shape == SLIDING then
      sliding_give(other, floor(floor(charged_at / other.c) / other.b), back)
    end
    if shape then s.dirty = true end
  end
end

local function gap_give()
  local debt = owing(s.gap1, s.gap2, now, 1)
  if debt > s.gap and not (s.gap1 == gap1 and s.gap2 == gap2) then return end
  s.gap2 = s.gap2 - most(most(owing(gap1, gap2, now, 1), s.gap), debt)
end

-- Whether the charge still counted at that moment.
local function counted(at_moment)
  if s.shape == LOG then return first + s.b > at_moment end
  local mark = likewise(s, { first = first, second = second, third = third })
  return shape_fresh_in(mark, at_moment) > 0
end

local function give(back)
  if s.shape == BUCKET then
    bucket_give(back)
  elseif s.shape == STEPPED then
    stepped_give(back)
  elseif s.shape == FIXED then
    fixed_give(back)
  elseif s.shape == SLIDING then
    sliding_give(s, first, back)
  elseif s.shape == LOG then
    log_give(s, first, now, back)
  else
    -- Only what this process holds since then: what had lapsed is somebody else's by now.
    if s.second == second then
      local given = most(back, s.own)
      s.first, s.own = s.first - given, s.own - given
    end
    return
  end
  give_others(back)
  if spent == 0 and s.gap > 0 then gap_give() end
  local is_banned = banned_for(s, now) > 0
  local on_record = is_banned or struck_for(s, now) > 0
  if on_record and banned == 0 and counted(is_banned and s.ban1 or s.strike1) then
    -- All that has been refused would have been admitted, had this never been charged.
    s.refused = least(s.refused - back, 0)
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
