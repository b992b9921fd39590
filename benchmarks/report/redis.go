package main

// The tables and charts of the limiters in Redis.

var redisTables = []table{
	{name: "redis-machine", title: "Machine and run"},
	{"redis-hot-64", "One key, 64 goroutines", costs("hot_key"), "", ""},
	{"redis-user-64", "A key for each of 64 goroutines", costs("per_user"), "", ""},
	{"redis-refuse-64", "Refusals on one key, 64 goroutines", costs("refuse"), "", ""},
	{"redis-hot", "One key, ns", allow("/load:hot_key", "/par@num"), goroutines, ""},
	{
		"redis-user", "A key for each goroutine, ns",
		allow("/load:per_user", "/par@num"), goroutines, "",
	},
	{"redis-refuse", "Refusals on one key, ns", allow("/load:refuse", "/par@num"), goroutines, ""},
	{"redis-trips", "Round trips per decision, one key", query{
		".name:Allow /load:hot_key",
		"/impl", "/par@num",
		[]string{"trips/op"},
	}, goroutines, ""},
	{"redis-failed", "Share of calls that fail, one key", query{
		".name:Allow /load:hot_key",
		"/impl", "/par@num",
		[]string{"errors/op"},
	}, goroutines, ""},
	{
		"redis-server", "Time inside the server per decision, 64 goroutines, ns",
		query{".name:Allow /par:64", "/impl", "/load", []string{"server-sec/op"}},
		"", "",
	},
	{
		"redis-keys", "The server's memory for each of 100,000 keys",
		query{".name:Keys", "/impl", "", []string{"B/key"}},
		"", "",
	},
	{
		"redis-race", "64 goroutines on a bucket that allows 40 tokens in 3 s",
		query{".name:OverGrant /procs:1", "/impl", "", race},
		"", "",
	},
	{
		"redis-granted", "The same race: tokens granted, of 40",
		query{".name:OverGrant", "/impl", "/procs@num", race[:1]},
		processes, "",
	},
	{
		"redis-race-calls", "The same race: calls",
		query{".name:OverGrant", "/impl", "/procs@num", []string{"calls"}},
		processes, "",
	},
	{
		"redis-processes", "One key, 64 goroutines divided among processes, ns",
		query{".name:Processes", "/impl", "/procs@num", perOp},
		processes, "",
	},
	{
		"redis-processes-trips", "Round trips per decision, 64 goroutines divided among processes",
		query{".name:Processes", "/impl", "/procs@num", []string{"trips/op"}},
		processes, "",
	},
}

const processes = "processes"

var race = []string{"granted", "allowed", "calls", "failed"}

// costs returns the query for all that a decision of 64 goroutines costs.
func costs(load string) query {
	return query{
		".name:Allow /par:64 /load:" + load, "/impl", "",
		[]string{"sec/op", "trips/op", "server-sec/op", "allocs/op", "errors/op"},
	}
}

var redisContenders = []string{
	"tb", "tb-plain", "tb-shared", "tb-lease", "lua-evalsha", "multi-cmd", "watch", "redis_rate",
	"rueidislimiter", "throttled",
}

var redisCharts = []chart{
	{"redis-goroutines", redisContenders, []panel{
		{
			allow("/load:hot_key", "/par@num"),
			"Grants in Redis, one key", "goroutines (2 cores)", "ns per decision", 1e9,
		},
		{
			allow("/load:per_user", "/par@num"),
			"Grants in Redis, a key for each", "goroutines (2 cores)", "ns per decision", 1e9,
		},
	}},
	{"redis-processes", redisContenders, []panel{
		{
			query{".name:Processes", "/impl", "/procs@num", perOp},
			"Grants in Redis, one key", "processes with 64 goroutines", "ns per decision", 1e9,
		},
		{
			query{".name:OverGrant", "/impl", "/procs@num", race[:1]},
			"A bucket that allows 40 tokens", "processes with 64 goroutines", "tokens granted", 1,
		},
	}},
}
