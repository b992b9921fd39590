-- KEYS     The buckets, all different.
-- ARGV[1]  The deadline x, and for each bucket the capacity C, the rate of N/D units a µs, the
--          first byte of a value, and the cost.
--
-- All costs are taken, or none. The reply is the time t of the decision, and for each bucket s and
-- the deficit before the cost. After the deadline it is t, and nothing is taken.
local x, i = struct.unpack('>d', ARGV[1])
if t > x then return t end
local buckets, reply, all = {}, struct.pack('>I7', t), true
for k = 1, #KEYS do
  local C, N, D, format, cost
  C, N, D, format, cost, i = struct.unpack('>dddBI4', ARGV[1], i)
  local s, d, stepped = read(KEYS[k], C, N, D, format)
  if not s then return redis.error_reply(foreign) end
  if d + cost > C then all = false end
  buckets[k] = {s, d, N, D, format, cost, stepped}
  reply = reply .. struct.pack('>I7I4', s, d)
end
for k = 1, #KEYS do
  local s, d, N, D, format, cost, stepped = unpack(buckets[k])
  if all then
    write(KEYS[k], s, d + cost, N, D, format)
  elseif stepped then
    write(KEYS[k], s, d, N, D, format)
  end
end
return reply
