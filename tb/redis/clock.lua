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
