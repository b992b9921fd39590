package replay

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestReportByHand(t *testing.T) {
	log := line("a", 10, 1) + line("a", 10, 1) + line("a", 10, 1) + line("a", 10, 1) +
		"broken\n" + line("b", 8, 1) + line("a", 11, 1) + line("a", 11, 1)
	two := input("two.log", line("c", 5, 1))
	rep := replay(t, options(t, "1", 2), input("one.log", log), two)
	text := func(v any) string { b, _ := json.Marshal(v); return string(b) }
	for _, tt := range []struct {
		name string
		got  any
		want string
	}{
		{"requests", rep.Requests, "8"},
		{"files", rep.Files, `[{"name":"one.log","format":"common","lines":8,"malformed":1,` +
			`"others":0,"late":0,"no_zone":false},{"name":"two.log","format":"common","lines":1,` +
			`"malformed":0,"others":0,"late":0,"no_zone":false}]`},
		{"first", rep.First, `"2015-05-17T10:00:05Z"`},
		{"last", rep.Last, `"2015-05-17T10:00:11Z"`},
		{"keys", rep.Keys, "3"},
		{"exact", rep.KeysExact, "true"},
		{"limit", rep.Limit, `{"rate":"1/s","burst":2,"keys_refused":1,"granted":5,"refused":3}`},
		{"kinds", rep.Kinds, `[{"kind":"one path","matters":true,"clients":1,"clients_refused":1,` +
			`"requests":6,"requests_refused":3},{"kind":"one request","matters":false,"clients":2,` +
			`"clients_refused":0,"requests":2,"requests_refused":0},{"kind":"more than 2 requests",` +
			`"matters":false,"clients":1,"clients_refused":1,"requests":6,"requests_refused":3}]`},
		{"top", rep.Top, `[{"key":["a"],"requests":6,"refused":3,` +
			`"peak_per_second":4,"habit":"mostly /p"},{"key":["b"],"requests":1,"refused":0,` +
			`"peak_per_second":1,"habit":"mostly /p"},{"key":["c"],"requests":1,` +
			`"refused":0,"peak_per_second":1,"habit":"mostly /p"}]`},
		{"none refused together", Suggestion{}, `{"share":0,"refused_with_twice_the_burst":0,` +
			`"rates":null,"paths":null,"together":0}`},
		{"busiest", rep.Busiest, `{"second":"2015-05-17T10:00:10Z","requests":4}`},
	} {
		if text(tt.got) != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, text(tt.got), tt.want)
		}
	}
	if len(rep.Malformed) != 1 || !strings.HasPrefix(rep.Malformed[0], "one.log:5: ") {
		t.Errorf("malformed %q, want one.log:5", rep.Malformed)
	}
}
