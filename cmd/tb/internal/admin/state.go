package admin

import (
	"net/http"

	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/tb"
)

// shown is how many buckets the page has room for.
const shown = 6

// snapshot is what the page shows.
type snapshot struct {
	Proxy   string       `json:"proxy"`
	Demo    bool         `json:"demo"`
	Rules   []ruleView   `json:"rules"`
	Buckets []bucketView `json:"buckets"`
}

type ruleView struct {
	Set      string   `json:"set"`
	Name     string   `json:"name"`
	Shadow   bool     `json:"shadow"`
	Capacity int      `json:"capacity"`
	Rate     float64  `json:"rate"` // tokens a second
	Keys     int      `json:"keys"`
	Evicted  uint64   `json:"evicted"`
	Granted  uint64   `json:"granted"`
	Refused  uint64   `json:"refused"`
	PerGrant []uint64 `json:"grantedPerSecond"` // the oldest first
	PerDeny  []uint64 `json:"refusedPerSecond"`
}

type bucketView struct {
	Rule     string  `json:"rule"`
	Key      string  `json:"key"`
	Refused  uint64  `json:"refused"`
	Level    float64 `json:"level"` // in tokens; -1 if it is not known
	Capacity int     `json:"capacity"`
	Rate     float64 `json:"rate"`
}

// state answers with a snapshot.
func (s *Server) state(w http.ResponseWriter, _ *http.Request) {
	v := snapshot{Proxy: s.Proxy, Demo: s.Demo, Rules: []ruleView{}, Buckets: s.buckets()}
	for _, r := range s.Limiter.Stats() {
		granted, refused := s.history.of(ruleID{r.Set, r.Rule})
		v.Rules = append(v.Rules, ruleView{
			Set: r.Set, Name: r.Rule, Shadow: r.Shadow,
			Capacity: r.Limit.Capacity, Rate: perSecond(r.Limit),
			Keys: r.Table.Keys, Evicted: r.Table.EvictedFull + r.Table.EvictedInDebt,
			Granted: r.Granted + r.ShadowGranted, Refused: r.Refused + r.ShadowRefused,
			PerGrant: granted, PerDeny: refused,
		})
	}
	send(w, v)
}

// buckets returns those that were refused most lately, as they are now, and then those that
// a burst will drain.
func (s *Server) buckets() []bucketView {
	views, seen := []bucketView{}, map[bucketID]bool{}
	for _, b := range append(s.hot.most(maxHot), s.drained()...) {
		if seen[b.bucketID] {
			continue
		}
		seen[b.bucketID] = true
		v := bucketView{Rule: b.rule, Key: s.Key(b.key), Refused: b.refused, Level: -1}
		if b.sample != nil {
			e, ok := s.ask(b)
			if !ok {
				s.hot.drop(b.bucketID)
				continue
			}
			v.Level, v.Capacity, v.Rate = level(e), e.Limit.Capacity, perSecond(e.Limit)
		}
		if views = append(views, v); len(views) == shown {
			break
		}
	}
	return views
}

// drained returns the buckets that requests of a burst take from.
func (s *Server) drained() (all []bucket) {
	if s.arriving == nil {
		return nil
	}
	for _, e := range s.Limiter.Explain(s.arriving) {
		if !e.Shadow {
			all = append(all, bucket{
				bucketID: bucketID{e.Rule, httplimit.FormatKey(e.Key)}, sample: s.arriving,
			})
		}
	}
	return all
}

// ask asks the limiter about a bucket, and takes nothing. There is no answer if the policy
// has changed since, so that there is no such bucket.
func (s *Server) ask(b bucket) (httplimit.Explanation, bool) {
	for _, e := range s.Limiter.Explain(b.sample) {
		if e.Rule == b.rule && httplimit.FormatKey(e.Key) == b.key {
			return e, true
		}
	}
	return httplimit.Explanation{}, false
}

// level returns how many tokens there are. If the request would be granted, the part of a
// token beyond the whole ones is not known.
func level(e httplimit.Explanation) float64 {
	switch {
	case e.MissingKey != "": // there is no bucket
		return -1
	case e.Allowed:
		return float64(e.Remaining) + e.Cost
	case e.RetryAfter == tb.Never:
		return float64(e.Remaining)
	}
	return max(0, e.Cost-e.RetryAfter.Seconds()*perSecond(e.Limit))
}

func perSecond(l tb.Limit) float64 { return float64(l.Tokens) / l.Per.Seconds() }
