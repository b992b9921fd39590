package redis

import (
	"testing"
	"time"

	"github.com/redis/rueidis"
	"go.uber.org/goleak"

	"github.com/seed-181794aa/ratelimit/internal/redistest"
)

func TestMain(m *testing.M) {
	origin = origin.Add(-time.Hour) // no test takes a small number for a local time of now or later
	// A closed client of a cluster still closes old connections, and delays a look at the cluster,
	// in goroutines that end some seconds later.
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"),
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"))
}

// dial returns a client of the server. It is closed with the test, before the server ends.
func dial(t testing.TB, s *redistest.Server) rueidis.Client {
	t.Helper()
	return dialOption(t, rueidis.ClientOption{InitAddress: []string{s.Addr}, DisableCache: true})
}
