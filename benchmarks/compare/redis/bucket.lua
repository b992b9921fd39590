-- Takes tokens of a bucket in a hash: tokens, and ts in milliseconds.
-- ARGV: the client's time in ms, tokens per second, capacity, cost, time to live in ms.
local now, rate = tonumber(ARGV[1]), tonumber(ARGV[2])
local capacity, cost = tonumber(ARGV[3]), tonumber(ARGV[4])
local kept = redis.call('HMGET', KEYS[1], 'tokens', 'ts')
local tokens, ts = tonumber(kept[1]) or capacity, tonumber(kept[2]) or now
if now > ts then -- calls may arrive out of order
  tokens = math.min(capacity, tokens + (now - ts) * rate / 1000)
  ts = now
end
local granted = tokens >= cost
if granted then tokens = tokens - cost end
redis.call('HSET', KEYS[1], 'tokens', tokens, 'ts', ts)
redis.call('PEXPIRE', KEYS[1], ARGV[5])
return granted and 1 or 0
