-- KEYS[1]  The bucket. Its value has 12 bytes: 16 plus the decimal digits of the scale, the own
--          time s in µs, and the deficit d in units at s.
-- ARGV[1]  The capacity C, the rate of N/D units a µs, the first byte of a value, and the costs,
--          each after its deadline x.
--
-- A cost whose deadline has passed takes nothing. If every other cost is granted at s, the reply is
-- the new value. Otherwise it is s, the deficit before the costs, and the time t of the decision.
-- If all deadlines have passed, it is t.
local key, costs = KEYS[1], ARGV[1]
local C, N, D, format, x, cost, i = struct.unpack('>dddBI7I4', costs)
-- include clock.lua
-- include read.lua
local before, all, late = d, true, true
while true do
  if t <= x then
    late = false
    if d + cost <= C then d = d + cost else all = false end
  end
  if i > #costs then break end
  x, cost, i = struct.unpack('>I7I4', costs, i)
end
if late then return t end
if d > before or stepped then
-- include write.lua
  if all and s == t then return value end
end
return struct.pack('>I7I4I7', s, before, t)
