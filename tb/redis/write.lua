-- The bucket of key is stored until it is full, or a second longer if the clocks of clients decide.
local value = struct.pack('>BI7I4', format, s, d)
local from = expiry == 'PXAT' and s or 1000000
local ms = math.floor((from + d * D / N) / 1000) + 1 -- full by then
if ms > 9e15 then ms = 9e15 end -- beyond 10^17, a number has an exponent in a command
redis.call('SET', key, value, expiry, ms)
