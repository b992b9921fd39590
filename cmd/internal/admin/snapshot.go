package admin

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/internal/printable"
	"github.com/seed-181794aa/ratelimit/tb"
)

const maxShown = 6 // buckets, besides the ones that are held

type snapshot struct {
	Title string `json:"title"`
	Where string `json:"where"`
	// Warnings are about the policy in force.
	Warnings []string     `json:"warnings"`
	Rules    []ruleView   `json:"rules"`
	Buckets  []bucketView `json:"buckets"`
}

type ruleView struct {
	Set              string   `json:"set"`
	Name             string   `json:"name"`
	Shadow           bool     `json:"shadow"`
	Capacity         int      `json:"capacity"`
	Rate             float64  `json:"rate"` // tokens a second
	Keys             int      `json:"keys"`
	Granted          uint64   `json:"granted"`
	Refused          uint64   `json:"refused"`
	Delayed          uint64   `json:"delayed"`
	MeanDelay        float64  `json:"meanDelay"` // seconds
	Waiting          int      `json:"waiting"`
	MaxDelay         float64  `json:"maxDelay"` // seconds; 0 if the rule does not delay
	MinRate          float64  `json:"minRate"`  // 0 if the rate is fixed
	MaxRate          float64  `json:"maxRate"`
	GrantedPerSecond []uint64 `json:"grantedPerSecond"` // the oldest first
	RefusedPerSecond []uint64 `json:"refusedPerSecond"`
}

type bucketView struct {
	Rule     string  `json:"rule"`
	Key      string  `json:"key"`
	Refused  uint64  `json:"refused"`
	Level    float64 `json:"level"` // in tokens; -1 if it is not known
	Capacity int     `json:"capacity"`
	Lent     float64 `json:"lent"` // tokens that delayed requests have taken in advance
	Held     float64 `json:"held"` // seconds in which a refusal of a rule with block grants nothing
}

func (s *Server) serveSnapshot(w http.ResponseWriter, _ *http.Request) {
	v := snapshot{
		Title: s.Title, Where: s.Where, Warnings: []string{}, Rules: []ruleView{},
		Buckets: s.bucketViews(),
	}
	if s.Warnings != nil {
		v.Warnings = append(v.Warnings, s.Warnings()...)
	}
	for _, r := range s.Limiter.Stats() {
		granted, refused := s.history.perSecond(ruleID{r.Set, r.Rule})
		v.Rules = append(v.Rules, ruleView{
			Set: r.Set, Name: r.Rule, Shadow: r.Shadow,
			Capacity: r.Limit.Capacity, Rate: perSecond(r.Limit),
			Keys: r.Table.Keys, Waiting: r.Waiting, MaxDelay: r.MaxDelay.Seconds(),
			MinRate: r.Adaptive.Min, MaxRate: r.Adaptive.Max,
			Granted: r.Granted + r.ShadowGranted, Refused: r.Refused + r.ShadowRefused,
			Delayed: r.Delayed, MeanDelay: r.DelaySeconds / float64(max(r.Delayed, 1)),
			GrantedPerSecond: granted, RefusedPerSecond: refused,
		})
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(printable.NewWriter(w)).Encode(v) // this fails only if the client is gone
}

func (s *Server) bucketViews() []bucketView {
	views := []bucketView{}
	for _, b := range s.hot.hottest() {
		v := bucketView{Rule: b.rule, Key: s.FormatKey(b.key), Refused: b.refused, Level: -1}
		if b.level != nil {
			limit, level, err := b.level()
			if err != nil {
				s.hot.remove(b.id)
				continue
			}
			v.Capacity = limit.Capacity
			if level != (tb.Level{}) { // a request without its key has no bucket
				v.Level, v.Lent = max(0, level.Tokens), max(0, -level.Tokens)
				v.Held = held(limit, level).Seconds()
			}
		}
		if len(views) < maxShown || v.Held > 0 {
			views = append(views, v)
		}
	}
	return views
}

// held returns how long a bucket is held: its next token comes later than its rate supplies one. It
// is 0 below a second, because the tokens are rounded.
func held(l tb.Limit, level tb.Level) time.Duration {
	lacking := 1 - min(0, level.Tokens)
	rest := level.NextToken - time.Duration(lacking*float64(l.Per)/float64(l.Tokens))
	if rest < time.Second || level.NextToken == tb.Never {
		return 0
	}
	return rest
}

func perSecond(l tb.Limit) float64 {
	if l.Per == 0 { // a rule without a bucket
		return 0
	}
	return float64(l.Tokens) / l.Per.Seconds()
}
