-- supplied returns the units that N/D units a µs supply in the e µs after instant s. It is exact
-- up to C+1, because D² and (C+2)*D are below 2^53.
local function supplied(s, e, N, D)
  return math.floor(((s % D) * (N % D) % D + e * N) / D)
end
