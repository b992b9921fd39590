-- This text is put before a script, for the calls of the past that a replay makes. Real time has
-- nothing to do with them, so a bucket expires after a day.
local server = redis
local redis = {error_reply = server.error_reply}
function redis.call(name, key, value)
  if name == 'SET' then return server.call('SET', key, value, 'EX', 86400) end
  return server.call(name, key)
end
