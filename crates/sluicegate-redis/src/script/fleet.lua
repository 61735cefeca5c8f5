-- The heartbeat of one member of a fleet, and the view of its round.
--
-- A row has an entry of six doubles for each member: its number, the round of its last heartbeat, what it wants and its
-- weight since then, and what it wanted before; -1 for a member that was not there or has left. In round r a member counts
-- for what it had published before r, so every view of a round is the same, whenever it is read.
local now, id, length, kept, most, want, weight = struct.unpack('<ddddddd', ARGV[1])
local key, unpack, pack = KEYS[1], struct.unpack, struct.pack
local floor = math.floor
local soonest = 3600000
if now < 0 then
  soonest = 1
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end
local round = floor(now / length)

local row = redis.call('GET', key) or ''
if #row % 48 ~= 0 then
  return redis.error_reply('BADROW ' .. key .. ' holds ' .. #row .. ' bytes, not a multiple of 48')
end
local entries, view, found, count = {}, {}, false, 0
for at = 1, #row, 48 do
  local member, last, wants, heavy, before, heavy_before = unpack('<dddddd', row, at)
  -- A clock that stepped back: what was published later is as if it were of this round.
  if last > round then last = round end
  local counts, counts_weight = wants, heavy
  if last == round then counts, counts_weight = before, heavy_before end
  if last < round - kept then counts = -1 end
  if counts >= 0 then view[#view + 1] = pack('<ddd', member, counts, counts_weight) end
  if member == id then
    found = true
    entries[#entries + 1] = pack('<dddddd', id, round, want, weight, counts, counts_weight)
  elseif last >= round - kept then
    entries[#entries + 1] = pack('<dddddd', member, last, wants, heavy, before, heavy_before)
  end
end
if not found and want >= 0 then
  if #entries >= most then
    return redis.error_reply('FULL ' .. key .. ' has ' .. #entries .. ' members')
  end
  entries[#entries + 1] = pack('<dddddd', id, round, want, weight, -1, 0)
end

local expiry = math.ceil((kept + 2) * length / 1000)
if expiry < soonest then expiry = soonest end
redis.call('SET', key, table.concat(entries), 'PX', string.format('%.0f', expiry))
return pack('<dd', round, (round + 1) * length - now) .. table.concat(view)
