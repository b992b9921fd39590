-- KEYS[1]  The bucket. Its value has 12 bytes: 16 plus the decimal digits of the scale, the own
--          time s in µs, and the deficit d in units at s.
-- ARGV[1]  The capacity C, the rate of N/D units a µs, the deadline x, the first byte of a value,
--          and the costs.
--
-- If every cost is granted at s, the reply is the new value. Otherwise it is s, the deficit before
-- the costs, and the time t of the decision. After the deadline it is t, and nothing is taken.
local key, costs = KEYS[1], ARGV[1]
local C, N, D, x, format, cost, i = struct.unpack('>ddddBI4', costs)
-- include clock.lua
if t > x then return t end

-- include read.lua
local before, all = d, true
while true do
  if d + cost <= C then d = d + cost else all = false end
  if i > #costs then break end
  cost, i = struct.unpack('>I4', costs, i)
end
if d > before or stepped then
-- include write.lua
  if all and s == t then return value end
end
return struct.pack('>I7I4I7', s, before, t)
