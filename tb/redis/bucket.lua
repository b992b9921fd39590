-- t is the time of the decision in µs. ARGV[2] is the client's clock. Without it, the server's
-- clock decides.
local t, expiry, from = ARGV[2], 'PX', 0
if t then
  t = tonumber(t)
  from = t
else
  t = redis.call('TIME')
  t = t[1] * 1000000 + t[2]
  expiry = 'PXAT'
end

-- read returns the own time of a bucket at t, its deficit, and whether the clock was set back. A
-- bucket without a value is full. read returns nothing if the value is not a bucket.
local function read(key, C, N, D, format)
  local s, d, stepped = t, 0, false
  local value = redis.call('GET', key)
  if value then
    local f
    if #value == 12 then f, s, d = struct.unpack('>BI7I4', value) end
    if f ~= format then
      if not f or f < 16 or f > 22 then return end
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
  return s, d, stepped
end

-- write stores a bucket until it is full, and returns its value.
local function write(key, s, d, N, D, format)
  local value = struct.pack('>BI7I4', format, s, d)
  local ms = math.floor((s - from + d * D / N) / 1000) + 1 -- full by then
  if ms > 9e15 then ms = 9e15 end -- beyond 10^17, a number has an exponent in a command
  redis.call('SET', key, value, expiry, ms)
  return value
end

local foreign = 'NOBUCKET of tb/redis is here'
