-- t is the time of the decision in µs, by the client's clock in ARGV[2], or by the server's clock.
-- If the own time of a bucket is later by more than slack, the server's clock was set back. The
-- clocks of two clients may differ by more, and none of them was set.
local t, expiry, slack = tonumber(ARGV[2]), 'PX', math.huge
if not t then
  t = redis.call('TIME')
  t = t[1] * 1000000 + t[2]
  expiry, slack = 'PXAT', 1000000
end
