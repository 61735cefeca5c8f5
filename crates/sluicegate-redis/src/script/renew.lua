-- Renews what one process holds of concurrency limits. See `rows.lua` for the entries of a row.
--
-- If the process has taken nothing from a row since `turn`, the row is lowered to the amount that the process knows it holds. The
-- difference belongs to messages that were lost. The answer has a byte for each row: 1 if the process should hold something in it and
-- has no entry.
local args, call, pcall, unpack, pack = ARGV[1], redis.call, redis.pcall, struct.unpack, struct.pack
local now, holder, lease, turn, place = unpack('<dddd', args)
-- A test may stop its clock, but the server's clock goes on, so rows must not expire meanwhile.
local soonest = 3600000
if now < 0 then
  soonest = math.ceil(lease / 1000)
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end

local name, missing = pack('<d', holder), {}
for i = 1, #KEYS do
  local key, row = KEYS[i], pcall('GET', KEYS[i])
  local known, at
  known, place = unpack('<d', args, place)
  missing[i] = '\0'
  if type(row) == 'string' then
    at = string.find(row, name, 17, true)
    -- Entries are counted from the end, because the words before them have different lengths.
    while at and (#row + 1 - at) % 48 ~= 0 do at = string.find(row, name, at + 1, true) end
  end
  if at then
    local _, held, since, newest = unpack('<dddd', row, at)
    local first, kept, entry = unpack('<d', row), held, ''
    if newest <= turn and known < held then kept = known end
    if kept > 0 then entry = pack('<dddddd', holder, kept, since, newest, now + lease, lease) end
    first = first - held + kept
    row = pack('<d', first) .. string.sub(row, 9, at - 1) .. entry .. string.sub(row, at + 48)
    if first == 0 and #row == 16 then
      call('DEL', key)
    else
      -- Other holders, or a ban, may need the row for longer.
      local expiry = call('PTTL', key)
      if expiry < soonest then expiry = soonest end
      call('SET', key, row, 'PX', string.format('%.0f', expiry))
    end
  elseif known > 0 then
    missing[i] = '\1'
  end
end
return table.concat(missing)
