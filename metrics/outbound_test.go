package metrics

import (
	"slices"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/outbound"
)

type transport outbound.Stats

func (t transport) Stats() outbound.Stats { return outbound.Stats(t) }

var _ OutboundSource = (*outbound.Transport)(nil)

func TestCollectsOutbound(t *testing.T) {
	of := func(n uint64) outbound.RuleStats {
		return outbound.RuleStats{Waited: n, WaitTime: time.Duration(n+1) * time.Second / 2,
			TooLate: n + 2, Held: n + 3, Refused: n + 4}
	}
	first, second := of(10), of(20)
	first.Name, second.Name = "per-host", "tokens"
	c := Outbound("api", transport{Sent: 1, Failures: 2, Rules: []outbound.RuleStats{first, second}})
	want := []string{
		"tb_outbound_attempts_total 1",
		"tb_outbound_pauses_total 13", "tb_outbound_pauses_total 23",
		"tb_outbound_refused_attempts_total 14", "tb_outbound_refused_attempts_total 24",
		"tb_outbound_store_failures_total 2",
		"tb_outbound_too_late_attempts_total 12", "tb_outbound_too_late_attempts_total 22",
		"tb_outbound_wait_seconds_total 5.5", "tb_outbound_wait_seconds_total 10.5",
		"tb_outbound_waited_attempts_total 10", "tb_outbound_waited_attempts_total 20",
	}
	if got := samples(t, c); !slices.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}
