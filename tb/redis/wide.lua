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
-- quotient is below 2^48. The first quotient is wrong by at most two, and all of its rest is exact.
local function divide(a, b, r, m)
  local p = a * b
  local q = math.floor(p / m)
  local g = q * m
  local rest = (p - g) + (low(a, b, p) - low(q, m, g)) + r
  local k = math.floor(rest / m)
  return q + k, rest - k * m
end

-- supplied returns the units that N/D units a µs supply in the e µs after instant s. It is exact
-- up to 2^48, because N and D are below 2^48.
local function supplied(s, e, N, D)
  local _, r = divide(s % D, N % D, 0, D)
  return (divide(e, N, r, D))
end
