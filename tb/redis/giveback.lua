-- KEYS     The buckets.
-- ARGV[1]  For each bucket the rate of N/D units a µs, the first byte of a value, a cost that was
--          taken, and the own time s of the bucket then.
--
-- A bucket gets its cost back, less the supply from s to its own time now. It gets nothing if it is
-- full, has another scale, or its clock was set back. Its own time stays. The reply is the units
-- that were given back.
local i, sum = 1, 0
for k = 1, #KEYS do
  local N, D, format, cost, s
  N, D, format, cost, s, i = struct.unpack('>ddBI4I7', ARGV[1], i)
  local value = redis.call('GET', KEYS[k])
  if value and #value == 12 then
    local f, now, d = struct.unpack('>BI7I4', value)
    if f == format and now >= s then
      local back = math.min(cost - supplied(s, now - s, N, D), d)
      if back > 0 then
        redis.call('SET', KEYS[k], struct.pack('>BI7I4', format, now, d - back), 'KEEPTTL')
        sum = sum + back
      end
    end
  end
end
return sum
