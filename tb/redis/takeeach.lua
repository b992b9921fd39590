-- KEYS     The buckets, all different.
-- ARGV[1]  The capacity C, the rate of N/D units a µs, and the first byte of a value. Then for each
--          bucket the number of its costs, and the costs, each after its deadline x.
--
-- Each bucket decides by itself, as in take.lua. The reply is the time t of the decisions, and for
-- each bucket s and the deficit before the costs. All buckets are read before one is written, so an
-- error has written nothing.
local costs = ARGV[1]
local C, N, D, format, i = struct.unpack('>dddB', costs)
-- include clock.lua
local reply, times, deficits = {}, {}, {}
for k, key in ipairs(KEYS) do
-- include read.lua
  reply[k] = struct.pack('>I7I4', s, d)
  local before, n, x, cost = d
  n, i = struct.unpack('B', costs, i)
  for _ = 1, n do
    x, cost, i = struct.unpack('>I7I4', costs, i)
    if t <= x and d + cost <= C then d = d + cost end
  end
  if d > before or stepped then times[k], deficits[k] = s, d end
end
for k, key in ipairs(KEYS) do
  local s, d = times[k], deficits[k]
  if s then
-- include write.lua
  end
end
return struct.pack('>I7', t) .. table.concat(reply)
