-- KEYS     The names of the buckets.
-- ARGV[1]  For each key its limit: the decimal digits of the scale, the capacity C, and the rate of
--          N/D units a µs. Then the number of its items, and the items: see item.go. 8 is added to
--          the digits if the items of this key and of the next one are all granted or none. A key
--          in several such groups occurs in KEYS several times.
--
-- The value of a bucket has 28 bytes: the digits, the own time s in µs, the deficit d at s, and C, N
-- and D. In debt, d is above C. A bucket that has changed its limit has 7 bytes more: the time of the
-- last change in µs, or one more than the change before if that is later. So no two changes of a
-- bucket have the same number.
--
-- A held bucket has s ahead, at the end of its hold, and d is C and the debt behind it. A hold is a
-- change, and has 7 bytes more after its number: the time of the last write.
--
-- The reply is the time t of the decisions in µs, 19 bytes for each bucket before them, and the error
-- of the writes. The 19 bytes are the state, s, d, and the number of the last change or 0. A bucket
-- under another limit has been converted. The state is 255 if the value is not a bucket, 254 if it
-- could not be written, 253 if it could not be read, 1 if the bucket is held, and otherwise 0.
--
-- For speed: Redis makes the functions anew in each run, so they have no upvalues, which would be
-- allocations. A call costs as much as ten operations: x - x % 1 rounds down without one. A reply
-- that grows by .. costs a copy a bucket, and Redis 7.0 formats a number slowly.

-- supplied returns the units that N/D units a µs supply in the e µs after instant s. It is exact
-- up to 2^48, because N and D are below 2^48.
local function supplied(s, e, N, D)
  if D <= 67108864 and e * N < 4503599627370496 then -- all integers are below 2^53
    local units = ((s % D) * (N % D) % D + e * N) / D
    return units - units % 1
  end

  -- split returns the upper 26 bits of a double, and the rest (Dekker 1971).
  local function split(a)
    local x = a * 134217729
    local high = x - (x - a)
    return high, a - high
  end

  -- low returns a*b - p, where p is the double nearest to a*b. All its steps are exact.
  local function low(a, b, p)
    local ah, al = split(a)
    local bh, bl = split(b)
    return ((ah * bh - p) + ah * bl + al * bh) + al * bl
  end

  -- divide returns the quotient and the remainder of a*b + r by m, for r < m. It is exact if the
  -- quotient is below 2^48. The first quotient is wrong by at most two, and its rest is exact.
  local function divide(a, b, r, m)
    local p = a * b
    local q = math.floor(p / m)
    local g = q * m
    local rest = (p - g) + (low(a, b, p) - low(q, m, g)) + r
    local k = math.floor(rest / m)
    return q + k, rest - k * m
  end

  local _, r = divide(s % D, N % D, 0, D)
  return (divide(e, N, r, D))
end

-- store stores a bucket until it is full, and returns the error if it cannot. After a change it is
-- stored at least as long as before: the next limit may be the old one, by which it is full later.
local function store(t, key, digits, C, N, D, change, held, s, d)
  local ms = (s + d * D / N) / 1000 + 1
  if change > 0 then
    local left = redis.pcall('PTTL', key)
    if type(left) == 'table' then return left.err end
    ms = math.max(ms, math.floor(t / 1000) + left)
  end
  if ms > 9e15 then ms = 9e15 end -- Redis has 63 bits
  if d > 4294967295 then d = 4294967295 end
  local value = struct.pack('>BI7I4I4I6I6', digits, s, d, C, N, D)
  if change > 0 then value = value .. struct.pack('>I7', change) end
  if held then value = value .. struct.pack('>I7', t) end
  return redis.pcall('SET', key, value, 'PXAT', string.format('%d', ms)).err
end

local pack, parse, pcall = struct.pack, struct.unpack, redis.pcall
local time = redis.call('TIME')
local t = time[1] * 1000000 + time[2]
local forever = 9223372036854774 - t -- until the clock of tb/mutex ends
local args, i = ARGV[1], 1
local group, granted -- buckets that all pay or none
local reply, more, failure = '', nil, ''
for k = 1, #KEYS do
  local key = KEYS[k]
  local digits, C, N, D, n, kind, x, units
  digits, C, N, D, n, kind, x, units, i = parse('>BI4I6I6BBI7I4', args, i)
  local joined = digits >= 8
  if joined then
    digits = digits - 8
    if not group then group, granted = {}, true end
  end
  local state, change, scale, s, d, capacity, rate, divisor = 0, 0, digits, t, 0, C, N, D
  local own, stored, held = true, true, false
  local value, why = pcall('GET', key)
  if value and #value ~= 28 and #value ~= 35 and #value ~= 42 then
    state = 255
    if type(value) == 'table' then why = value.err end
    if why and string.find(why, 'WRONGTYPE', 1, true) then why = nil end
  elseif value then
    scale, s, d, capacity, rate, divisor = parse('>BI7I4I4I6I6', value)
    local set = s
    if #value > 28 then
      change = parse('>I7', value, 29)
      if #value == 42 then set, held = parse('>I7', value, 36), true end
    end
    if set > t + 1000000 then s, stored = s - set + t, false end -- set back: wait no longer
    held = held and s > t
    own = scale == digits and capacity == C and rate == N and divisor == D
  end

  -- The bucket is stored with the deficit lacked at its own time was. At t it is as s and d say,
  -- and ahead is the supply from t to s. In debt, only the deficit counts.
  local was, lacked, changed, stale, ahead = s, d, false, false, 0
  if s < t then
    if d > 0 then
      d = d - supplied(s, t - s, rate, divisor)
      if d < 0 then d = 0 end
    end
    s = t
  elseif s > t then
    ahead = supplied(t, s - t, rate, divisor)
    if d > capacity and not held then s, d, ahead = t, d + ahead, 0 end
  end
  if not own then -- keep the tokens, in millionths
    local tokens, unit = (capacity - d) * 10 ^ (6 - scale), 10 ^ (6 - digits)
    if tokens < 0 then
      d = math.min(C + math.ceil(-tokens / unit), 2 ^ 32 - 1)
    else
      d = C - math.min(math.floor(tokens / unit), C)
    end
    if s > t then ahead = supplied(t, s - t, N, D) end
    was, lacked, stored = s, d, false
    change = math.max(t, change + 1)
  end
  if held then state = 1 end
  local since, lack, number = was, lacked, change
  local back, owed = since, lack -- if its group is refused
  for j = 1, n do
    if j > 1 then kind, x, units, i = parse('>BI7I4', args, i) end
    local pays = t <= x and state ~= 255
    local converts = kind ~= 5
    if kind == 1 then -- look, which is a refusal if the bucket lacks its units
      converts, units = units > 0 and units <= C and d + units > C, 0
    end
    if not stored and pays and converts then stale = true end
    if kind == 0 then -- take
      pays = pays and d + units <= C
    elseif kind == 2 then -- reserve, with the most debt, and the longest wait in µs
      local debt, within
      debt, within, i = parse('>I4I7', args, i)
      local owed = d + units - C + ahead
      if held and debt > C then debt = debt + ahead end -- a Wait counts from the end of the hold
      pays = pays and (d + units <= C or units <= C and owed <= debt and
        owed <= supplied(t, math.min(within, forever), N, D))
    elseif kind == 3 then -- give back, which pays debt first
      if lacked > C and math.min(lacked, d) - units <= C then was, lacked = s, d end
      units = -math.min(units, held and lacked - C or lacked)
    elseif kind == 4 then -- charge, up to a debt of C
      units = math.max(0, math.min(units, 2 * C - (held and 0 or ahead) - d))
      if d + units > C and d + units - C + ahead > supplied(t, forever, N, D) then
        was, lacked, units, changed = s, d, 0, pays -- no clock shows the slot
      end
    elseif kind == 5 then -- undo a grant at f: the bucket had change c, lacked m, and was (w, l)
      local c, f, m, w, l
      c, f, m, w, l, i = parse('>I7I7I4I7I4', args, i)
      local gain = was >= f and supplied(f, was - f, N, D) or -supplied(was, f - was, N, D)
      if c ~= change or held and was ~= f or (held or was < f) and lacked <= C then
        units = 0 -- converted or held, or the clock was set back
      elseif lacked <= C then -- the bucket may have been full since
        local refilled = math.max(0, gain - math.max(0, m + units - C))
        units = -math.min(lacked, math.max(0, units - refilled))
      elseif lacked + gain ~= m + units then -- a later reservation keeps its slot
        units = 0
      elseif pays then
        was, lacked, units = w, l + units, -units
      end
    elseif kind > 6 then -- take if keep is left, or (8) never; and otherwise hold for e µs
      local keep, e
      keep, e, i = parse('>I4I7', args, i)
      local need, takes = units + keep, kind == 7
      if pays and e > 0 and (not takes or not held and need <= C and d + need > C) then
        local u = math.max(s, math.min(t + e, 9007199254740991))
        if u > (held and s or t) then
          d = C + math.max(0, d - C - supplied(s, u - s, N, D))
          s, ahead, change = u, supplied(t, u - t, N, D), math.max(t, change + 1)
          was, lacked, back, owed, held, stale = s, d, s, d, true, true
        end
      end
      pays = pays and takes and d + need <= C
    end
    if kind == 6 then -- reset, also a value that is not a bucket
      value = pcall('DEL', key)
      why = type(value) == 'table' and value.err or nil
      if state == 255 and not why then state = 0 end
      change, stored, stale, held = 0, true, false, false
      s, d, ahead, was, lacked, changed = t, 0, 0, t, 0, false
    elseif pays and units > 0 then
      d = d + units
      was, lacked, changed = s, d, true
      if d > C and not held then s, d, ahead = t, d + ahead, 0 end
    elseif pays and units < 0 then
      d, lacked, changed = math.max(0, d + units), lacked + units, true
    end
    if not pays then granted = false end
  end
  if group then
    group[#group + 1] = {
      t, key, digits, C, N, D, change, held, was, lacked, changed, stale, back, owed}
    for j = 1, joined and 0 or #group do
      local b = group[j]
      if not granted then b[9], b[10], b[11] = b[13], b[14], false end
      if b[11] or b[12] then why = store(unpack(b, 1, 10)) or why end
    end
    if not joined then group = nil end
  elseif changed or stale then
    why = store(t, key, digits, C, N, D, change, held, was, lacked)
  end
  if why then state, failure = state == 255 and 253 or 254, why end
  if k == 1 then
    reply = pack('>I7BI7I4I7', t, state, since, lack, number)
  else
    more = more or {reply}
    more[k] = pack('>BI7I4I7', state, since, lack, number)
  end
end
return (more and table.concat(more) or reply) .. failure
