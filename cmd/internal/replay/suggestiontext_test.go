package replay

import (
	"strings"
	"testing"
)

// If no burst is enough, the table has a dash, the list a 0, and there is no limit.
func TestNoBurstIsEnough(t *testing.T) {
	o := suggestOptions(t, "0%", "1")
	for _, cost := range []string{"2000000000", "1073741824"} {
		o.Cost = mustCost(t, cost)
		rep := replay(t, o, input("a.log", strings.Repeat(line("a", 1, 1), 2))).Report
		s, text := rep.Suggestion, rendered(t, &rep)
		if s.Rates[0].Clients[0].Burst != 0 || s.Limit != nil ||
			!strings.Contains(text, "1/s    -") || !strings.Contains(text, "No burst is enough.") {
			t.Errorf("cost %s: %+v\n%s", cost, s, text)
		}
	}
}

func TestASuggestionForOneRateIsNoKnee(t *testing.T) {
	for rate, want := range map[string]string{
		"1":  "Suggested: 1/s, burst 1 at 0 %. It refuses 0 of 1 client (0.0 %).\nA client can take",
		"70": "burst 70 at 0 %.",
	} {
		rep := replay(t, suggestOptions(t, "0%", rate), input("a.log", line("a", 1, 1))).Report
		text := rendered(t, &rep)
		raised := strings.Contains(text, "\nThe log needs less, but a policy needs a burst")
		if !strings.Contains(text, want) || raised != (rate == "70") {
			t.Errorf("rate %s:\n%s", rate, text)
		}
	}
}

func TestASuggestionAsText(t *testing.T) {
	log := strings.Repeat(line("192.0.2.1", 1, 1), 3) + line("b", 1, 1) + line("b", 2, 1)
	o := suggestOptions(t, "50%", "1,3")
	var b strings.Builder
	if err := replay(t, o, input("a.log", log)).Report.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	const want = `log       a.log: 5 lines, common
key       ip (IPv6 by /64), cost 1
time      2015-05-17 10:00:01 to 2015-05-17 10:00:02 UTC (1s)

requests             5
keys                 2

Least burst with which at most a share of the clients is ever refused:

   rate  0 %  0.01 %  0.1 %  1 %  5 %  50 %
  > 1/s    3       3      3    3    3     1
    3/s    3       3      3    3    3     1

The knee at each share, the clients that it hurts, and the load that it saves:

   share         limit  clients  of all  requests  of all  longest wait
     0 %  1/s, burst 3        0   0.0 %         0   0.0 %             -
  0.01 %  1/s, burst 3        0   0.0 %         0   0.0 %             -
   0.1 %  1/s, burst 3        0   0.0 %         0   0.0 %             -
     1 %  1/s, burst 3        0   0.0 %         0   0.0 %             -
     5 %  1/s, burst 3        0   0.0 %         0   0.0 %             -
    50 %  1/s, burst 1        1  50.0 %         2  40.0 %            1s

Suggested: 1/s, burst 1, the knee at 50 %. It refuses 1 of 2 clients (50.0 %).
A client can take at most 61 tokens in a minute.
The rate is the lowest or the highest that was tried: others may be better.

  tb replay --rate 1/s --burst 1 FILE
  tb proxy --policy policy.json

policy.json:

{
  "rules": [
    {
      "name": "suggested",
      "limit_keys": [
        "ip:address"
      ],
      "algorithm_config": {
        "tokens_per_second": 1,
        "burst": 1
      }
    }
  ]
}

1 client is not an address: a replay of the policy has one bucket for all of them.

Refused, with the burst that each would need:

  needs  requests  peak/s                first                 last  key
      3         3       3  2015-05-17 10:00:01  2015-05-17 10:00:01  192.0.2.1  mostly /p

2 of 5 requests have a client that is not an address, such as b.
`
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
