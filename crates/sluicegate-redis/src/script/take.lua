-- One decision over several limits, charged all or none. Also answers what a decision would be (peek), and forgets keys (reset).
-- See `decide.rs` in sluicegate-core.
local TAKE, PEEK, RESET = 1, 2, 3
-- How often the limits are asked again until they agree on one moment.
local ROUNDS = 16
-- The part of a limit in the decision.
local ASKED, CHARGED, SPARED, REFUSED, SHADOWED = 0, 1, 2, 3, 4
-- A refusal leaves up to this many dropped entries unwritten. With more, each refusal would walk over them again.
local LEFT = 64

local now, op, patience, several, at = unpack('<dddd', ARGV[1])
now, several = clock(now), several == 1
if patience < 0 then patience = nil end

-- The limits that decide. Shadow limits are left out.
local slots, real, is_never = {}, {}, false
for i = 1, #KEYS do
  local cost
  cost, at = unpack('<d', ARGV[1], at)
  slots[i], at = limit(KEYS[i], ARGV[1], at)
  slots[i].cost = cost
  -- A reset does not free held places: each holder gives its own back.
  if op == RESET and slots[i].algorithm ~= CONCURRENT then
    call('DEL', KEYS[i])
    fresh_row(slots[i])
  else
    local malformed = load(slots[i], now)
    if malformed then return redis.error_reply(malformed) end
  end
  meet(slots[i], now, true)
  if not slots[i].shadow then
    real[#real + 1] = slots[i]
    is_never = is_never or slots[i].never
  end
end

-- The moment at which all limits admit the request. Each is asked in turn, until none moves the moment.
local function agreed(wait)
  for _, s in ipairs(real) do
    wait = enter(s, now, wait)
    if not wait then return nil end
  end
  return wait
end

local function all_book(at_moment, wait)
  for _, s in ipairs(real) do
    if not books(s, at_moment, wait, several) then return false end
  end
  return true
end

-- When the request leaves, if every limit admits it within the patience, or has room in its own queue.
local function earliest_leave()
  local wait, allowed = 0, patience or 0
  for _, s in ipairs(real) do
    local entry = enter(s, now, 0)
    if not entry then return nil end
    local own = queued(s, now)
    if own then
      if entry > 0 or own > (patience or EXACT) then return nil end
      entry = own
    elseif entry > (patience or 0) then
      return nil
    end
    wait, allowed = at_least(wait, entry), at_least(allowed, entry)
  end
  if wait == 0 then return 0 end
  for _ = 1, ROUNDS do
    local asked = wait
    wait = agreed(wait)
    if not wait or wait > allowed then return nil end
    if wait == asked then return all_book(now, wait) and wait or nil end
  end
  return nil
end

local function longest_queue(at_moment)
  local longest = 0
  for _, s in ipairs(real) do longest = at_least(longest, queued(s, at_moment) or 0) end
  return longest
end

-- Whether every limit can book a place at the end of the queue at that moment.
local function books_at(when)
  local at_moment = at_most(now + when, EXACT - 1)
  return all_book(at_moment, longest_queue(at_moment))
end

-- A binary search for the first moment at which every limit can book a place at the end of the queue. At `early` not all can, at
-- `late` all can and the queue is as short as it gets. Once all can, they stay able.
local function earliest_booking(early, late)
  while late - early > 1 do
    local middle = early + floor((late - early) / 2)
    if books_at(middle) then late = middle else early = middle end
  end
  return late
end

-- The earliest moment at which the request is admitted, if nobody else spends.
local function earliest_enter()
  local when = 0
  for _ = 1, ROUNDS do
    local asked = when
    when = agreed(when)
    if not when then return nil end
    if when <= asked then
      -- One limit's queue may hold the request back for longer than another limit can book ahead.
      local at_moment = at_most(now + when, EXACT - 1)
      local wait = longest_queue(at_moment)
      local too_long = wait - (patience or EXACT)
      if too_long > 0 then
        -- A client that would wait too long comes back when the queue is shorter by that much.
        when = when + too_long
      else
        if #real == 1 or all_book(at_moment, wait) then return when end
        local shortest = 0
        for _, s in ipairs(real) do shortest = at_least(shortest, shortest_queue(s)) end
        local empty = when + at_least(wait - shortest, 0)
        if books_at(empty) then return earliest_booking(when, empty) end
        -- From then on the end of the queue moves with the time. It may come to lie in a window in which places can be booked.
        at_moment = at_most(now + empty, EXACT - 1)
        wait = longest_queue(at_moment)
        local later = 0
        for _, s in ipairs(real) do
          if not books(s, at_moment, wait, several) then
            local begins = window_begins(s, at_moment, wait)
            if not begins then return nil end
            later = at_least(later, begins)
          end
        end
        when = empty + later
      end
    end
  end
  return nil
end

-- Whether a limit is one of those that refuse. It refuses because it would admit the request later than `ready`, or, if a `place`
-- is to be booked, because that place cannot be booked.
local function refuses(s, ready, place)
  if is_never then return s.never end
  if place then return not books(s, now, place, several) end
  local entry = enter(s, now, 0)
  if not entry then return true end
  local own = queued(s, now)
  if entry == 0 then return own ~= nil and own > (ready or EXACT) end
  return entry > (ready or 0) or own ~= nil or not books(s, now, entry, several)
end

local function any_refuses(ready, place)
  for _, s in ipairs(real) do
    if refuses(s, ready, place) then return true end
  end
  return false
end

-- The data from which the client computes the limit's status.
local function fact(s, role, stamp)
  if s.algorithm ~= LOG then
    local cell = pack('<B', role) .. words(s)
    if s.wide then cell = cell .. pack('<dddd', s.gap1, s.gap2, s.ban1, s.ban2) end
    if s.after > 0 then cell = cell .. pack('<dd', s.strike1, s.strike2) end
    if s.carried then cell = cell .. pack('<dB', s.charged_at or 0, s.by_all and 1 or 0) end
    return cell
  end
  local banned = s.ban > 0 and banned_for(s, now) > 0
  local left = banned and 0 or log_remaining(s, now)
  -- During the gap nothing can be spent, whatever the count has left.
  local in_gap = s.gap > 0 and owing(s.gap1, s.gap2, now, 1) > 0
  local remaining = in_gap and 0 or left
  local retry, cost, window = enter(s, now, 0), s.cost, 0
  if remaining < s.a then
    s.cost = remaining + 1
    window = enter(s, now, 0)
    s.cost = cost
  end
  return pack('<BddddBddd', role, left, window or -1, fresh_in(s, now), retry or -1,
    (banned_for(s, now) > 0 and 1 or 0) + (struck_for(s, now) > 0 and 2 or 0) + (in_gap and 4 or 0), stamp or 0, s.gap1, s.gap2)
end

local reply = {}

-- What a shadow limit writes and reports for a request that the other limits have decided.
local function in_shadow(s, admitted)
  if enter(s, now, 0) ~= 0 or (queued(s, now) or 0) > 0 then
    if op == TAKE then
      if not is_never then refuse(s, now) end
      if s.dirty or s.dropped > LEFT then store(s, fresh_in(s, now), now) end
    end
    return fact(s, SHADOWED)
  end
  if op == TAKE and admitted then
    local stamp = spend(s, now, 0)
    store(s, fresh_in(s, now), now)
    return fact(s, CHARGED, stamp)
  end
  if op == TAKE and (s.dirty or s.dropped > LEFT) then store(s, fresh_in(s, now), now) end
  return fact(s, admitted and ASKED or SPARED)
end

local function charge(wait)
  for i, s in ipairs(slots) do
    if s.shadow then
      reply[i + 1] = in_shadow(s, true)
    elseif op == TAKE then
      local stamp = spend(s, now, wait)
      store(s, fresh_in(s, now), now)
      reply[i + 1] = fact(s, CHARGED, stamp)
    else
      reply[i + 1] = fact(s, ASKED)
    end
  end
end

local function refuse_all()
  -- If each limit would wait long enough but they find no moment in common, all limits that wait refuse. If none waits but one is
  -- held back by the queue of another, those that cannot book that far refuse.
  local ready, place, queue = patience, nil, longest_queue(now)
  if not any_refuses(patience, nil) then
    if any_refuses(nil, nil) then
      ready = nil
    elseif any_refuses(nil, queue) then
      place = queue
    end
  end
  for i, s in ipairs(slots) do
    if s.shadow then
      reply[i + 1] = in_shadow(s, false)
    else
      local refused = refuses(s, ready, place)
      if op == TAKE then
        if refused and not is_never then refuse(s, now) end
        if s.dirty or s.dropped > LEFT then store(s, fresh_in(s, now), now) end
      end
      reply[i + 1] = fact(s, refused and REFUSED or SPARED)
    end
  end
end

for _, s in ipairs(slots) do
  -- A peek leaves the stamps of a log as they are: the arithmetic skips those that count no more.
  if op == TAKE or s.algorithm ~= LOG then tidy(s, now) else tidy_words(s, now) end
end
local wait = earliest_leave()
if wait then
  charge(wait)
  reply[1] = pack('<Bdd', 1, wait, now)
else
  refuse_all()
  reply[1] = pack('<Bdd', 0, is_never and -2 or earliest_enter() or -1, now)
end
return table.concat(reply)
