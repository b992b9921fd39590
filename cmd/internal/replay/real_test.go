package replay

import (
	"io"
	"os"
	"testing"

	"github.com/seed-181794aa/ratelimit/cmd/internal/accesslog"
)

// realLog is a log of 10,000 requests that is not part of the repository.
const realLog = "../../../../shared/data/apache_access.log"

func realInput(t *testing.T) Input {
	t.Helper()
	if _, err := os.Stat(realLog); err != nil {
		t.Skipf("the log to try it on is not here: %v", err)
	}
	return Input{"apache_access.log", func() (io.ReadCloser, error) { return os.Open(realLog) }}
}

func TestRealLog(t *testing.T) {
	rep := replay(t, options(t, "1", 5), realInput(t)).Report
	if rep.Requests != 10_000 || rep.Keys != 1_753 ||
		rep.Files[0].Malformed != 0 || rep.Files[0].Format != accesslog.Combined ||
		rep.Late != 0 {
		t.Errorf("%d requests, %d keys, %d late, %+v; want 10000, 1753, 0",
			rep.Requests, rep.Keys, rep.Late, rep.Files)
	}
}

// refusals are the refusals of a limit in the real log, by a simulation in exact fractions that
// sorts the lines and never evicts a bucket. Half of the lines step back in time, by up to a
// minute: in their order, the first limit would refuse 1,874 requests.
type refusals struct {
	cost, rate     string
	burst          int
	requests, keys uint64
}

var realRefusals = []refusals{
	{"1", "1/s", 5, 91, 5},
	{"1", "5/s", 10, 0, 0},
	{"1", "0.3/s", 2, 1352, 167},
	{"1", "1/m", 3, 4590, 582},
	{"1", "1/24h", 10, 3697, 122},
	{"bytes", "102400/s", 1024 * 1000, 163, 81},
	{"bytes", "20480/s", 1024 * 500, 305, 108},
}

func TestRealLogIsDecidedExactly(t *testing.T) {
	in := realInput(t)
	for _, want := range realRefusals {
		o := options(t, want.rate, want.burst)
		o.Cost = mustCost(t, want.cost)
		got := replay(t, o, in).Report.Limit
		if got.Rate != want.rate || int(got.Burst) != want.burst ||
			got.Refused != want.requests || got.KeysRefused != want.keys {
			t.Errorf("%+v; want %+v", *got, want)
		}
	}
}
