package planted

const (
	callGo         = "httplimit/call.go"
	controlGo      = "httplimit/control.go"
	keyGo          = "httplimit/key.go"
	matchingGo     = "httplimit/matching.go"
	reloadGo       = "httplimit/reload.go"
	restoreGo      = "httplimit/restore.go"
	responseCostGo = "httplimit/responsecost.go"
	settlementGo   = "httplimit/settlement.go"
	storeGo        = "httplimit/store.go"
	waitGo         = "httplimit/wait.go"
)

var httpBugs = []bug{
	// call
	{
		"a call in the pool keeps a limiter", callGo,
		"\tclear(c.charges)\n",
		"",
	},
	{
		"a call has the address and the claims of the request before", callGo,
		"\tc.perRequest = perRequest{}\n",
		"",
	},
	{
		"a request that must not wait is delayed again, and does not wait", callGo,
		"\t\t\tc.patience = 0\n",
		"",
	},
	{
		"a request with a fault is not counted", callGo,
		"\t\tc.count(e).rejected.Add(1)\n\t\treturn faulty",
		"\t\treturn faulty",
	},
	{
		"a request waits for its last rule, and not for the longest delay", callGo,
		"c.delay = max(c.delay, e.delay)",
		"c.delay = e.delay",
	},
	{
		"a rule that a store has not asked has refused", callGo,
		"!e.decision.Allowed && e.decision.RetryAfter > 0",
		"!e.decision.Allowed",
	},
	{
		"a store that has failed is asked for each shadow rule", callGo,
		"\t\t\tfailed = err\n",
		"",
	},
	{
		"a shadow rule without its key charges a bucket", callGo,
		"case e.fault != noFault:\n\t\t\te.decision",
		"case e.fault != noFault && false:\n\t\t\te.decision",
	},
	// store
	{
		"two rules have one name in a store", storeGo,
		"url.QueryEscape(r.Name) + \":\"",
		"r.Name + \":\"",
	},
	{
		"a limiter gets a key whose memory the next request reuses", storeGo,
		"strings.Clone(e.key)",
		"strings.TrimPrefix(e.key, \"\")",
	},
	{
		"a wait counts from before the answer of a store", callGo,
		"\t\tc.now = c.l.clock() // a store with its own clock counts the delay from its decision\n",
		"",
	},
	{
		"a client that disconnects ends the command of a store", storeGo,
		"\tctx = context.WithoutCancel(ctx)\n",
		"",
	},
	// wait
	{
		"a request that may not wait keeps its place", waitGo,
		"w.count.Add(1) > most {\n\t\tw.leave()\n",
		"w.count.Add(1) > most {\n",
	},
	{
		"a request for which there is no place to wait pays twice", waitGo,
		"// other requests have come first\n\t\tc.undo()\n",
		"// other requests have come first\n",
	},
	{
		"a request that must not wait any longer pays twice", waitGo,
		"if o != granted {\n\t\tc.undo()",
		"if o == gone {\n\t\tc.undo()",
	},
	{
		"the end of all waits lets a request wait beyond its deadline", waitGo,
		"patience = min(patience, time.Until(w.end))",
		"patience = time.Until(w.end)",
	},
	{
		"a wait does not see that waits have stopped", waitGo,
		"if slot.After(w.end) {",
		"if slot.IsZero() {",
	},
	// settlement
	{
		"a header is read again when a body is written", responseCostGo,
		"\ts.isRead = true\n",
		"",
	},
	{
		"a settlement ends twice", settlementGo,
		"\ts.call, s.parts = nil, nil\n",
		"",
	},
	{
		"a request that was not served pays what its header says", settlementGo,
		"s.parts[i].actual, s.parts[i].known = 0, true",
		"s.parts[i].known = true",
	},
	{
		"a request that passes because its store failed is settled", settlementGo,
		"e.decision.Allowed && !c.failedOpen",
		"e.decision.Allowed",
	},
	{
		"a HEAD request pays for a body that is not sent", responseCostGo,
		"\tif s.call.r.Method == http.MethodHead { // net/http drops the body\n\t\ts.bytes = 0\n\t}\n",
		"",
	},
	{
		"a client that hangs up behind a settlement gets nothing back", waitGo,
		"case reloaded || e.price.response.inResponse:",
		"case reloaded:",
	},
	{
		"a client that hangs up after a reload gets nothing back", waitGo,
		"reloaded := c.l.policy.Load() != c.policy",
		"reloaded := false",
	},
	{
		"a number that is too large is not a number", "httplimit/pricing.go",
		"return min(number, math.MaxFloat64), true",
		"return number, number <= math.MaxFloat64",
	},
	// reload
	{
		"keys keep the number of their tier in another table", reloadGo,
		"indexes[i] = s.tiers.index[name]",
		"_, indexes[i] = name, i",
	},
	{
		"a reload that fails keeps the limits that it has set", reloadGo,
		"func() error { return set(last) }",
		"func() error { return set(next) }",
	},
	{
		"a reload that fails stops the controls", reloadGo,
		"\t\t\tfor _, c := range paused {\n\t\t\t\tc.setPhase(running)\n\t\t\t}\n",
		"\t\t\t_ = paused\n",
	},
	{
		"keys of a tier that is gone keep its limit", reloadGo,
		"\t\t\tlimit = r.Limit\n",
		"\t\t\tlimit = r.limiters[i].Limit()\n",
	},
	// snapshot and restore
	{
		"a snapshot has no tiers", "httplimit/snapshot.go",
		"\t\tline = append(line, t.tierField...)\n",
		"",
	},
	{
		"long keys do not find their buckets after a restart", restoreGo,
		"\tcopy(l.ownSecret[:], s.head.Secret)\n",
		"",
	},
	{
		"networks of one size get the buckets of another size", restoreGo,
		"case !slices.Equal(r.snapshotRule().Prefixes, saved.Prefixes):",
		"case false:",
	},
	{
		"a key that is long now is hashed with the secret that Restore replaces", restoreGo,
		"(*keySecret)(s.head.Secret).hashKey",
		"s.limiter.ownSecret.hashKey",
	},
	// control
	{
		"a control of a policy that is gone sets the limit", controlGo,
		"\tcase stopped:\n\t\treturn errStopped\n",
		"",
	},
	{
		"a rule keeps the label of the policy before", controlGo,
		"\tc.current.Store(r)\n\tc.setCurrent(limit)\n",
		"\tc.setCurrent(limit)\n",
	},
	{
		"a response is reported twice", controlGo,
		"\ts.flights = nil\n",
		"",
	},
	// matching and keys
	{
		"an entry has what the entry before it in its place had", matchingGo,
		"\tc.entries[last] = entry{}\n",
		"",
	},
	{
		"processes have different hashes for a long key in a store", matchingGo,
		"secret = &c.policy.sharedSecret",
		"secret = &c.l.ownSecret",
	},
	{
		"the fallback applies beside the rules", matchingGo,
		"c.collect(s.withShadows, true) || applied",
		"c.collect(s.withShadows, true)",
	},
	{
		"a value may be the digest of another one", keyGo,
		"compositekey.AppendDigest(key, sum[:]), noFault",
		"compositekey.Append(key, sum[:]), noFault",
	},
	{
		"a client chooses one of two values of a header", keyGo,
		"return values[0], len(values) > 1",
		"return values[0], false",
	},
	{
		"a client can compute the hash of a long key", keyGo,
		"\tcopy(both[:], s[:])\n",
		"",
	},
}
