-- The bucket of key at t has the own time s and the deficit d. It is full without a value.
local s, d, stepped = t, 0, false
local value = redis.call('GET', key)
if value then
  local f
  if #value == 12 then f, s, d = struct.unpack('>BI7I4', value) end
  if f ~= format then
    if not f or f < 16 or f > 22 then return redis.error_reply('NOBUCKET of tb/redis is here') end
    if f < format then d = d * 10 ^ (format - f) else d = math.ceil(d / 10 ^ (f - format)) end
  end
  if s > t + slack then -- the clock was set back: wait for it no longer
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
