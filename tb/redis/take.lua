-- KEYS[1]  The bucket. Its value has 12 bytes: 16 plus the decimal digits of the scale, the own
--          time s in µs, and the deficit d in units at s. A bucket without a value is full.
-- ARGV[1]  The capacity C, the rate of N/D units a µs, the first byte of a value, and the costs,
--          each after its deadline x.
-- ARGV[2]  The client's clock in µs. Without it, the server's clock decides.
--
-- A cost whose deadline has passed takes nothing. If every other cost is granted at s, the reply is
-- the new value. Otherwise it is s, the deficit before the costs, and the time t of the decision.
-- If all deadlines have passed, it is t.
local costs = ARGV[1]
local C, N, D, format, x, cost, i = struct.unpack('>dddBI7I4', costs)
local t, expiry, from = ARGV[2], 'PX', 0
if t then
  t = tonumber(t)
  from = t
else
  t = redis.call('TIME')
  t = t[1] * 1000000 + t[2]
  expiry = 'PXAT'
end

local s, d, stepped = t, 0, false
local value = redis.call('GET', KEYS[1])
if value then
  local f
  if #value == 12 then f, s, d = struct.unpack('>BI7I4', value) end
  if f ~= format then
    if not f or f < 16 or f > 22 then return redis.error_reply('NOBUCKET of tb/redis is here') end
    if f < format then d = d * 10 ^ (format - f) else d = math.ceil(d / 10 ^ (f - format)) end
  end
  if s > t + 1000000 then -- the clock was set back: wait for it no longer
    s, d, stepped = t, math.min(d, C), true
  elseif d > C then -- a deficit of a greater capacity: move s to when the deficit is C
    s, d = math.min(s + math.ceil((d - C) * D / N) + 1, 2 ^ 53), C
  end
  if t > s then
    d = d - supplied(s, t - s, N, D)
    if d < 0 then d = 0 end
    s = t
  end
end

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
  value = struct.pack('>BI7I4', format, s, d)
  local ms = math.floor((s - from + d * D / N) / 1000) + 1 -- full by then
  if ms > 9e15 then ms = 9e15 end -- beyond 10^17, a number has an exponent in a command
  redis.call('SET', KEYS[1], value, expiry, ms)
  if all and s == t then return value end
end
return struct.pack('>I7I4I7', s, before, t)
