package replay

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/seed-181794aa/ratelimit/cmd/internal/accesslog"
	"github.com/seed-181794aa/ratelimit/internal/compositekey"
)

// shownKeys is how many of the keys refused most a report has.
const shownKeys = 10

// Report is the outcome of a replay. Its JSON form, which --json prints, is meant for
// programs: names and meanings stay, and fields may be added. Shares are fractions, 0 to 1.
// Times are RFC 3339 in UTC. Lists are never null.
type Report struct {
	// Sample reports that the log was generated.
	Sample bool `json:"sample"`
	// Interrupted reports that the replay ended before the log did.
	Interrupted bool `json:"interrupted"`
	// Files has the inputs that were opened, in order.
	Files []File `json:"files"`
	// Malformed has the first five malformed lines, as file:line: reason: text.
	Malformed []string `json:"malformed"`

	// Requests is the number of valid lines. Each line is a request.
	Requests uint64 `json:"requests"`
	// First and Last are the earliest and the latest time of a request. They are left out
	// if there is no request.
	First time.Time `json:"first,omitzero"`
	Last  time.Time `json:"last,omitzero"`
	// SteppedBack counts the requests that are earlier than the request on the line
	// before. LongestStep is the longest such step, in seconds.
	SteppedBack uint64  `json:"stepped_back"`
	LongestStep float64 `json:"longest_step_seconds"`
	// RefusedInLineOrder is how many requests a single limit would refuse if the order of the lines
	// decided and not the order of the times. It is left out if all lines are in order.
	RefusedInLineOrder *uint64 `json:"refused_in_line_order,omitempty"`
	// Late counts the requests that were decided after later ones, because their lines came too late
	// for the queue. LateRefused counts the refused ones under a single limit.
	Late        uint64 `json:"late"`
	LateRefused uint64 `json:"late_refused"`

	// FirstRequests has the first five requests as they were read.
	FirstRequests []FirstRequest `json:"first_requests"`

	// Keys is the number of distinct keys. If KeysExact is false, it is an estimate: within about
	// 1 %, or for a suggestion from the keys in its sample.
	Keys      uint64 `json:"keys"`
	KeysExact bool   `json:"keys_exact"`
	// Missing counts the requests without a part of the key, by part. They share the
	// bucket of the empty value.
	Missing map[string]uint64 `json:"missing"`
	// CostStandIns counts the requests whose cost field was not a positive number.
	CostStandIns uint64 `json:"cost_stand_ins"`

	// Clients says what is remarkable about the clients, if ip is in the key or the policy looks at
	// addresses. If there are more keys than are tracked, its counts are lower bounds.
	Clients Clients `json:"clients"`

	// KeyParts and Cost are the flags --key and --cost.
	KeyParts []string `json:"key_parts"`
	Cost     string   `json:"cost"`
	// Limits has an Outcome for each limit. A sweep has them in the order of the rates,
	// and for each rate in the order of the bursts.
	Limits []Outcome `json:"limits"`
	// Suggestion is left out unless --suggest asks for it. Limits and Top are empty then.
	Suggestion *Suggestion `json:"suggestion,omitempty"`
	// Policy is left out unless --policy names one. Its rules have their own keys and costs. So
	// Keys is 0 then, and Missing has no counts.
	Policy *PolicyOutcome `json:"policy,omitempty"`
	// Top has the ten keys refused most, the most refused first. A sweep leaves it empty,
	// because each limit would have another list.
	Top []TopKey `json:"top"`
	// Algorithms has an outcome for each name in --algorithm. Window is the length of their windows
	// in seconds.
	Algorithms []AlgorithmOutcome `json:"algorithms"`
	Window     float64            `json:"window_seconds,omitzero"`

	ipv6Prefix  int
	trusted     []netip.Prefix
	firstLook   bool
	hint        string // where the log may have the client
	longestStep time.Duration
}

// File is one input.
type File struct {
	// Name is the path as it was given, or "stdin".
	Name string `json:"name"`
	// Format is common, combined, json, logfmt, w3c, haproxy, alb, elb, s3, envoy, istio, apisix,
	// nginx-proxy-manager, uwsgi, squid, gin or log_format, or empty if no line was valid.
	Format accesslog.Format `json:"format"`
	// Lines counts the lines that are not blank, and Malformed the ones that are not a request.
	Lines     int64 `json:"lines"`
	Malformed int64 `json:"malformed"`
}

// Outcome has the decisions of one limit.
type Outcome struct {
	// Rate is the flag, always with its unit: "5/s", "300/m". Burst is in tokens.
	Rate  string `json:"rate"`
	Burst int    `json:"burst"`
	// Granted and Refused count requests. RefusedShare is the share of the refused ones.
	Granted      uint64  `json:"granted"`
	Refused      uint64  `json:"refused"`
	RefusedShare float64 `json:"refused_share"`
	// NeverGranted counts the refused requests whose cost is above the burst. No wait
	// would have helped them.
	NeverGranted uint64 `json:"never_granted"`
	// KeysRefused is how many keys were refused at least once. It is exact up to 131,072,
	// and an estimate beyond.
	KeysRefused      uint64  `json:"keys_refused"`
	KeysRefusedShare float64 `json:"keys_refused_share"`
	// EvictedFull counts the buckets that left the table when they were full again, which
	// loses nothing. It depends on the layout of the table and differs from run to run. No
	// decision depends on it, so the text leaves it out.
	EvictedFull uint64 `json:"evicted_full"`
	// EvictedInDebt counts the buckets that left the table before they were full. Forgiven
	// is their debt in tokens: the most that was granted above the limit because the table
	// was full.
	EvictedInDebt uint64  `json:"evicted_in_debt"`
	Forgiven      float64 `json:"forgiven"`
	// RefusedNew counts the requests that were refused because their key was new and the
	// table full (--overflow refuse).
	RefusedNew uint64 `json:"refused_new"`
}

// TopKey is one of the keys that were refused most.
type TopKey struct {
	// Key has the parts of the key, in the order of KeyParts.
	Key Key `json:"key"`
	// Requests counts the requests of the key, and Refused the refused ones among them.
	Requests uint64 `json:"requests"`
	Refused  uint64 `json:"refused"`
	// Partial reports that the log has more keys than are tracked, and that this one may
	// have been seen before it was tracked. Its counts are then lower bounds, and
	// RefusedMost is an upper bound of its refusals.
	Partial     bool   `json:"partial"`
	RefusedMost uint64 `json:"refused_most"`
	// Peak is the most requests in one second of the log, granted or not.
	Peak uint32 `json:"peak_per_second"`
	// LongestRun is the most refusals in a row.
	LongestRun uint64 `json:"longest_run"`

	Habit
}

// Key has the parts of a key. A part longer than 256 bytes is replaced by its first bytes
// and its SHA-256.
type Key []string

// MarshalJSON writes the parts as a list of strings. JSON must be valid UTF-8, so other
// parts are quoted as in Go, which keeps them distinct. A part that begins with a quote is
// quoted too, because it could be mistaken for a quoted part.
func (k Key) MarshalJSON() ([]byte, error) {
	texts := make([]string, len(k))
	for i, part := range k {
		if !utf8.ValidString(part) || strings.HasPrefix(part, `"`) {
			part = strconv.Quote(part)
		}
		texts[i] = part
	}
	return json.Marshal(texts)
}

// newReport returns a report without any request. Its lists are empty and not nil, because
// JSON would have nil as null.
func newReport(o Options) Report {
	return Report{
		Files: []File{}, Malformed: []string{}, Top: []TopKey{}, Limits: []Outcome{},
		Algorithms: []AlgorithmOutcome{},
		Missing:    make(map[string]uint64), KeyParts: o.Keys, Cost: o.Cost.String(),
		ipv6Prefix: o.IPv6Prefix, trusted: o.Trusted, firstLook: o.FirstLook,
		FirstRequests: []FirstRequest{},
	}
}

// fillReport fills the report from the counts.
func (res *Result) fillReport() {
	r, rep := res.replayer, &res.Report
	rep.Requests = r.span.requests
	if rep.Requests > 0 {
		rep.First = time.Unix(0, r.span.first).UTC()
		rep.Last = time.Unix(0, r.span.last).UTC()
	}
	rep.SteppedBack = r.span.stepsBack
	rep.longestStep = time.Duration(r.span.longestStep)
	rep.LongestStep = rep.longestStep.Seconds()
	rep.Late, rep.LateRefused = r.late, r.lateRefused
	if r.inLines != nil {
		rep.RefusedInLineOrder = &r.inLines.refused
	}
	rep.Keys, rep.KeysExact = r.keys.all.total(), r.keys.all.exact()
	rep.Keys = max(rep.Keys, r.keys.refused.total()) // estimates may contradict each other
	if r.found != nil {
		rep.Keys, rep.KeysExact = uint64(len(r.found.Clients))*r.found.OneIn, r.found.OneIn == 1
	}
	for i, name := range r.keyer.names {
		rep.Missing[name] = r.keyer.missing[i]
	}
	rep.CostStandIns = r.standIns
	rep.FirstRequests = append(rep.FirstRequests, r.firsts...)
	switch part := slices.Index(r.keyer.names, "ip"); {
	case r.policy != nil:
		none := func(func(string, uint64) bool) {}
		rep.Clients = r.proxies.clients(r.policy.private, rep.Requests, none)
		rep.Policy = r.policy.outcome(rep.Requests)
	case part >= 0:
		rep.Clients = r.proxies.clients(0, rep.Requests, r.clients(part))
	}
	for i, t := range r.trials {
		rep.Limits = append(rep.Limits, t.outcome(r.keys.refused.totalWith(i), rep.Keys))
	}
	if r.contest != nil {
		rep.Algorithms = r.contest.outcomes()
		rep.Window = r.contest.limit.Window().Seconds()
	}
	if len(r.trials) == 1 {
		for _, e := range r.ranking.most(shownKeys) {
			rep.Top = append(rep.Top, r.topKey(e))
		}
	}
}

// outcome returns the outcome of a limit that refused keysRefused of the keys.
func (t *trial) outcome(keysRefused, keys uint64) Outcome {
	s := t.limiter.Stats()
	return Outcome{
		Rate: t.rate.String(), Burst: int(t.burst),
		Granted: t.granted, Refused: t.refused, NeverGranted: t.neverGranted,
		RefusedShare: share(t.refused, t.granted+t.refused),
		KeysRefused:  keysRefused, KeysRefusedShare: share(keysRefused, keys),
		EvictedFull: s.EvictedFull, EvictedInDebt: s.EvictedInDebt,
		Forgiven: s.Forgiven, RefusedNew: s.RefusedNew,
	}
}

// checkNames returns an error if no request has a part of the key or the field of the cost,
// because its name is then a mistake.
func (rep *Report) checkNames() error {
	if rep.Policy != nil {
		return rep.Policy.missing
	}
	var errs []error
	for _, name := range rep.KeyParts {
		if n := rep.Missing[name]; n > 0 && n == rep.Requests {
			err := fmt.Errorf("--key %s: no request has it", name)
			if name == "ip" && rep.hint != "" {
				err = fmt.Errorf("%w; %s", err, rep.hint)
			}
			errs = append(errs, err)
		}
	}
	if n := rep.CostStandIns; n > 0 && n == rep.Requests {
		errs = append(errs, fmt.Errorf("--cost %s: no request has a positive number there", rep.Cost))
	}
	return errors.Join(errs...)
}

// topKey returns the statistics of a key.
func (r *replayer) topKey(e *tracked) TopKey {
	v := &e.Value
	return TopKey{
		Key: compositekey.Parts(e.Key), Requests: v.requests, Refused: v.refused,
		Partial: e.Partial, RefusedMost: uint64(e.Count),
		Peak: v.peak.Most, LongestRun: v.longestRun, Habit: r.habits.of(e.Key),
	}
}

// share returns part of all as a fraction, and 0 if all is 0.
func share(part, all uint64) float64 {
	if all == 0 {
		return 0
	}
	return float64(part) / float64(all)
}
