-- Elects the master of a name, and keeps the list of clients that may hold its leases.
--
-- The row has five doubles and a text: the number of the master, until when it is the master, its fence, how long its lease
-- is, from when on the list of clients is whole, and its address. The second key is a set of clients. Neither expires: no
-- fence may be used twice.
--
-- A candidate says which end of the mastership it was told last. Only with the end that is in the row is it elected, and
-- is its mastership prolonged: one whose questions arrive and that hears no answers must not keep the others from leading.
local now, what, id, length, fence, longest, heard = struct.unpack('<ddddddd', ARGV[1])
local rest = string.sub(ARGV[1], 57)
local pack, unpack, sub = struct.pack, struct.unpack, string.sub
if now < 0 then
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end

local row = redis.call('GET', KEYS[1])
local master, ends, last, held, whole, address = 0, 0, 0, 0, 0, ''
if row then
  if #row < 40 then
    return redis.error_reply('BADROW ' .. KEYS[1] .. ' holds ' .. #row .. ' bytes, less than 40')
  end
  master, ends, last, held, whole = unpack('<ddddd', row)
  address = sub(row, 41)
end
local function write(is, till, as, of, at)
  redis.call('SET', KEYS[1], pack('<ddddd', is, till, as, of, whole) .. at)
end
-- A clock that was set back must not lengthen a lease for ever.
if ends - now > held then
  ends = now + held
  write(master, ends, last, held, address)
end
local is_master = master == id and now < ends and fence == last

-- Writes down who has come and gone, for the master alone.
if what == 1 then
  if not is_master then return pack('<d', 0) end
  local at = 1
  while at <= #rest do
    local joins, size = unpack('<dd', rest, at)
    local client = sub(rest, at + 16, at + 15 + size)
    redis.call(joins == 1 and 'SADD' or 'SREM', KEYS[2], client)
    at = at + 16 + size
  end
  return pack('<d', 1)
end

-- Gives the mastership up.
if what == 2 then
  if is_master then write(master, now, last, held, address) end
  return pack('<d', 1)
end

if is_master then
  if heard == ends then
    ends = now + length
    write(master, ends, last, length, address)
  end
  if what == 0 then return pack('<dddd', 1, last, ends, ends - now) end
end

-- A page of the clients, for the master alone.
if what == 3 then
  if not is_master then return pack('<d', 0) end
  local page = redis.call('SSCAN', KEYS[2], rest, 'COUNT', 1000)
  local entries = {}
  for i = 1, #page[2] do entries[i] = pack('<d', #page[2][i]) .. page[2][i] end
  return pack('<dddd', 1, ends, ends - now, #page[1]) .. page[1] .. table.concat(entries)
end

if heard ~= ends or now < ends and master ~= id then
  local left = ends - now
  if left < 0 then left = 0 end
  return pack('<dddd', 0, last, ends, left) .. address
end
-- A fence larger than all that anybody remembers, also where the server has lost the row.
if fence > last then last = fence end
last = last + 1
-- The list has an empty entry from its beginning: without it, the server has lost the list, or a part of it. A list that was
-- begun anew lacks clients of earlier masters until the last of their leases has ended. What is left of the old list stays:
-- the next master waits for those clients in vain once, and then forgets them.
local is_lost = redis.call('SADD', KEYS[2], '') == 1 or not row
if is_lost or whole > now + longest then whole = now + longest end
ends = now + length
write(id, ends, last, length, rest)
return pack('<ddddd', 2, last, ends, length, (is_lost or now < whole) and 0 or 1)
