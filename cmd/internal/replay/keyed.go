package replay

import (
	"iter"
	"slices"

	"github.com/seed-181794aa/ratelimit/cmd/internal/accesslog"
	"github.com/seed-181794aa/ratelimit/cmd/internal/sketch"
)

// keyed composes the keys and the costs of requests, for the modes with --key and --cost.
type keyed struct {
	keyer    *keyer
	cost     Cost
	habits   habits
	standIns uint64 // requests whose cost field had no usable value
	extra    []string
}

func newKeyed(o *Options) (keyed, error) {
	k := keyed{cost: o.Cost, habits: habits{clients: sketch.NewSummary[habit](maxTracked)}}
	var err error
	if k.keyer, k.extra, err = newKeyer(o); err != nil {
		return k, err
	}
	if o.Cost.field != "" {
		k.extra = append(k.extra, o.Cost.field)
	}
	return k, nil
}

func (k *keyed) fields() []string { return k.extra }

// pack returns the key and the cost of a request.
func (k *keyed) pack(rec *accesslog.Record, _ accesslog.Format) (key []byte, cost float64) {
	key = k.keyer.key(rec)
	k.habits.add(key, rec)
	cost, standIn := k.cost.tokens(rec)
	if standIn {
		k.standIns++
	}
	return key, cost
}

// fillKeys fills in what the log lacks of keys and costs, and the clients with their requests.
func (k *keyed) fillKeys(rep *Report, keys iter.Seq2[string, uint64]) {
	for i, name := range k.keyer.names {
		rep.Missing[name] = k.keyer.missing[i]
	}
	rep.CostStandIns = k.standIns
	if part := slices.Index(k.keyer.names, "ip"); part >= 0 {
		rep.Clients.fill(rep.Requests, keys, part)
	}
}
