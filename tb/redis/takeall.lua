-- KEYS     The buckets, all different.
-- ARGV[1]  The deadline x, and for each bucket the capacity C, the rate of N/D units a µs, the
--          first byte of a value, and the cost.
--
-- All costs are taken, or none. The reply is the time t of the decision, and for each bucket s and
-- the deficit before the cost. After the deadline it is t, and nothing is taken.
local x, i = struct.unpack('>d', ARGV[1])
-- include clock.lua
if t > x then return t end
local buckets, reply, all = {}, struct.pack('>I7', t), true
for k, key in ipairs(KEYS) do
  local C, N, D, format, cost
  C, N, D, format, cost, i = struct.unpack('>dddBI4', ARGV[1], i)
-- include read.lua
  if d + cost > C then all = false end
  buckets[k] = {key, s, d, N, D, format, cost, stepped}
  reply = reply .. struct.pack('>I7I4', s, d)
end
for _, bucket in ipairs(buckets) do
  local key, s, d, N, D, format, cost, stepped = unpack(bucket)
  if all then d = d + cost end
  if all or stepped then
-- include write.lua
  end
end
return reply
