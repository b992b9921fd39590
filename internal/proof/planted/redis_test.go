package planted

const bucketsLua = "tb/redis/buckets.lua"

var redisBugs = []bug{
	// batches
	{
		"calls under two limits are decided under the first", "tb/redis/batch.go",
		" || items > 0 && c.parts[0].layout != q.batched[0].parts[0].layout {",
		" {",
	},
	{
		"no command follows the last one in flight", "tb/redis/batch.go",
		"\tif l.pending.first != nil {\n\t\tl.dispatch()\n\t}\n",
		"",
	},
	{
		"a call that has ended stays in the list of calls", "tb/redis/call.go",
		"c.newer.older = c.older",
		"_ = c.older",
	},
	{
		"a call that was decided late is not counted", "tb/redis/send.go",
		"\t\t\tl.counts.abandoned.Add(1)\n",
		"",
	},
	// the breaker and the clock
	{
		"a call from before a breaker has opened makes room after it", "tb/redis/breaker.go",
		"\tif opened == b.opened {\n\t\tb.underWay--\n\t}\n",
		"\tb.underWay--\n",
	},
	{
		"a server that stops for a moment fails many times", "tb/redis/breaker.go",
		"if began >= b.since {",
		"if true {",
	},
	{
		"the bounds of a clock do not move apart", "tb/redis/offset.go",
		"oldLow, oldHigh := o.low-aged, o.high+aged",
		"oldLow, oldHigh := o.low, o.high\n\t\t_ = aged",
	},
	// what a process knows
	{
		"a bucket from during a reset is remembered", "tb/redis/denials.go",
		"l.denial == 0 || uint32(w.resets) != 0",
		"l.denial == 0",
	},
	{
		"a bucket is remembered under another limit", "tb/redis/denials.go",
		"if v == nil || v.layout != m.id {",
		"if v == nil {",
	},
	{
		"an older bucket takes the place of a newer one", "tb/redis/denials.go",
		"\t\t\tif !m.isBefore(old.state, w.state) {\n\t\t\t\treturn\n\t\t\t}\n",
		"",
	},
	{
		"tokens of a lease are given back twice", "tb/redis/charge.go",
		"c.from.left.Add(c.item.units)\n\t\treturn\n",
		"c.from.left.Add(c.item.units)\n",
	},
	{
		"a lease gives back what can still be spent", "tb/redis/lease.go",
		"left := c.left.Swap(0)",
		"left := c.left.Load()",
	},
	{
		"a refusal keeps what the groups before it have taken", "tb/redis/takeall.go",
		"\t\tundo = append(undo, g.cancel)\n",
		"",
	},
	// the script
	{
		"a charge counts its debt from the time of the bucket", bucketsLua,
		"math.min(units, 2 * C - ahead - d)",
		"math.min(units, 2 * C - d)",
	},
	{
		"a bucket under another limit is kept for as long as before 1970", bucketsLua,
		"math.max(ms, math.floor(t / 1000) + left)",
		"math.max(ms, left)",
	},
	{
		"a bucket that could not be written is granted", bucketsLua,
		"if why then first, failure = 254, why end",
		"if why then failure = why end",
	},
	{
		"a value of another type is an error of the command", bucketsLua,
		"    if why and string.find(why, 'WRONGTYPE', 1, true) then why = nil end\n",
		"",
	},
}
