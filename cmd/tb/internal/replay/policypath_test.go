package replay

import (
	"strings"
	"testing"
)

func TestPathsThatAProxyRefuses(t *testing.T) {
	log := ""
	for _, path := range []string{"/a", "/v1/..%2fx", "x", "*", "/%zz", "/a/../b"} {
		log += strings.Replace(line("1.1.1.1", 1, 1), "/p", path, 1)
	}
	got := replayPolicy(t, `{"name": "a", "limit_keys": [],
		"algorithm_config": {"tokens_per_second": 1, "burst": 1}}`, input("a", log)).Policy
	if got.Unclear != 4 || got.counts() != "1/1 a 1/1" {
		t.Errorf("%d unclear, %s", got.Unclear, got.counts())
	}
}

// A request that has no path is one for /, as GET http://host is. A line without a request is not.
func TestPathsThatALogLacks(t *testing.T) {
	const policy = `{"name": "a", "limit_keys": [],
		"algorithm_config": {"tokens_per_second": 1, "burst": 1}}`
	for _, tt := range []struct {
		log     string
		unclear uint64
		want    string
	}{
		{requestLine("GET http://h HTTP/1.1") + requestLine("-") + requestLine("x"), 2, "1/0 a 1/0"},
		{strings.Repeat(`{"ts": 1, "ip": "1.1.1.1"}`+"\n", 2), 0, "1/1 a 1/1"},
		{strings.Repeat("ts=1 ip=1.1.1.1\n", 2), 0, "1/1 a 1/1"},
	} {
		got := replayPolicy(t, policy, input("a", tt.log)).Policy
		if got.Unclear != tt.unclear || got.counts() != tt.want || got.missing != nil {
			t.Errorf("%s: %d unclear, %s, %v", tt.log, got.Unclear, got.counts(), got.missing)
		}
	}
}
