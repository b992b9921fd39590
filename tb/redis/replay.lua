-- This text is put before a script, for the calls of the past that a replay makes. Real time has
-- nothing to do with them, so a bucket expires after a day. A call that is earlier than the own time
-- of its bucket is decided at that time, even if a server would take it for a clock that was set.
local server = redis
local redis = {error_reply = server.error_reply}
function redis.call(name, key, value)
  if name == 'SET' then return server.call('SET', key, value, 'EX', 86400) end
  return server.call(name, key)
end
local bucket = redis.call('GET', KEYS[1])
if bucket and #bucket == 12 then
  ARGV[2] = string.format('%.0f', math.max(ARGV[2], struct.unpack('>I7', bucket, 2)))
end
