package planted

const (
	controllerGo = "adapt/controller.go"
	countsGo     = "adapt/counts.go"
)

var adaptBugs = []bug{
	{
		"a decision does not see the failure that ends its interval", controllerGo,
		"\tn.ended.Add(1)\n\tr.c.look(now)\n",
		"\tr.c.look(now)\n\tn.ended.Add(1)\n",
	},
	{
		"a shorter hold takes the place of a longer one", controllerGo,
		"if old >= int64(until) || c.hold",
		"if c.hold",
	},
	{
		"no interval ends after a clock has stepped back", controllerGo,
		"if (since >= pace || since < -longest*pace) && c.mu",
		"if since >= pace && c.mu",
	},
	{
		"the sums go on from the last sums", countsGo,
		"\t*t = totals{}\n",
		"",
	},
	{
		"an interval has the counts of the intervals before", countsGo,
		"c.set(c.law.next(v))\n\tc.begin, c.before = now, *t",
		"c.set(c.law.next(v))\n\tc.begin = now",
	},
	{
		"a hold outlives a clock that has stepped back", countsGo,
		"\t\tc.hold.Store(int64(now))\n",
		"",
	},
	{
		"a rate that was not set counts as set", countsGo,
		"\t\tc.law.rate = old\n",
		"",
	},
	{
		"Retry-After is ignored", "adapt/law.go",
		"\t\tl.hold = v.hold\n",
		"",
	},
	{
		"the mean never forgets a latency", "adapt/latency.go",
		"d.sum = d.sum*scale + other.sum",
		"d.sum += other.sum",
	},
	{
		"a late answer of a client that has left counts as none", controllerGo,
		"if answered || latency > target {",
		"if answered {",
	},
}
