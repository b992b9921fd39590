package replay

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/accesslog"
)

// shownKeys is how many of the keys refused most are reported.
const shownKeys = 10

// Report is the outcome of a replay. Its JSON form, which --json prints, is meant for
// programs: names and meanings stay, fields may be added. Shares are fractions, 0 to 1.
// Times are RFC 3339 in UTC. Lists are never null.
type Report struct {
	// Sample says that the log was generated: it is not anybody's traffic.
	Sample bool `json:"sample"`
	// Interrupted says that the replay ended before the log did.
	Interrupted bool `json:"interrupted"`
	// Files has the inputs that were opened, in their order.
	Files []File `json:"files"`
	// Malformed has the first lines that were no requests, as file:line: reason: text.
	Malformed []string `json:"malformed"`

	// Requests is the number of valid lines: each is a request.
	Requests uint64 `json:"requests"`
	// First and Last are the earliest and the latest time of a request. Without any
	// request they are left out.
	First time.Time `json:"first,omitzero"`
	Last  time.Time `json:"last,omitzero"`
	// SteppedBack counts the requests whose time is before that of the request on the
	// line before, and LongestStep is by how much at most, in seconds.
	SteppedBack uint64  `json:"stepped_back"`
	LongestStep float64 `json:"longest_step_seconds"`

	// Keys is the number of distinct keys, estimated within about 1 % if not exact.
	Keys      uint64 `json:"keys"`
	KeysExact bool   `json:"keys_exact"`
	// Missing counts, by part of the key, the requests that did not have it. They
	// share the bucket of the empty value.
	Missing map[string]uint64 `json:"missing"`
	// CostStandIns counts the requests whose cost field had no positive number.
	CostStandIns uint64 `json:"cost_stand_ins"`

	// KeyParts and Cost are the flags, as they were given.
	KeyParts []string `json:"key_parts"`
	Cost     string   `json:"cost"`
	// Limits has what each limit that was tried would have done: one, or those of the
	// sweep, in the order of the rates and, for each, of the bursts.
	Limits []Outcome `json:"limits"`
	// Top has the ten keys refused most, the most refused first. In a sweep it is
	// empty, since that is another list for each limit.
	Top []TopKey `json:"top"`

	ipv6Prefix  int
	longestStep time.Duration
}

// File is one input.
type File struct {
	// Name is the path as it was given, or "stdin".
	Name string `json:"name"`
	// Format is common, combined or json, or empty if no line was valid.
	Format accesslog.Format `json:"format"`
	// Lines counts all lines, empty ones too, and Malformed those that are neither
	// empty nor a request.
	Lines     int64 `json:"lines"`
	Malformed int64 `json:"malformed"`
}

// Outcome is what one limit would have done.
type Outcome struct {
	// Rate is as it was given, always with its unit: "5/s", "300/m". Burst is in tokens.
	Rate  string `json:"rate"`
	Burst int    `json:"burst"`
	// Granted and Refused count requests, and RefusedShare is the share of the latter.
	Granted      uint64  `json:"granted"`
	Refused      uint64  `json:"refused"`
	RefusedShare float64 `json:"refused_share"`
	// NeverGranted counts the refused requests that no wait would have helped: their
	// cost is above the burst.
	NeverGranted uint64 `json:"never_granted"`
	// KeysRefused is how many keys were refused at least once. It is exact up to
	// 131,072 of them and then estimated too.
	KeysRefused      uint64  `json:"keys_refused"`
	KeysRefusedShare float64 `json:"keys_refused_share"`
	// EvictedFull counts the buckets that left the table when they were full again,
	// which loses nothing. How many that are depends on the layout of the table and differs
	// from run to run, so the text leaves it out: no decision depends on it.
	EvictedFull uint64 `json:"evicted_full"`
	// EvictedInDebt counts those that had to leave before, and Forgiven what they lacked
	// to full, in tokens: the most that was granted above the limit for want of room.
	EvictedInDebt uint64  `json:"evicted_in_debt"`
	Forgiven      float64 `json:"forgiven"`
	// RefusedNew counts the requests refused because their key was new and found no
	// room (--overflow refuse).
	RefusedNew uint64 `json:"refused_new"`
}

// TopKey is one of the keys that were refused most.
type TopKey struct {
	// Key has the parts of the key, in the order of KeyParts.
	Key Key `json:"key"`
	// Requests and Refused count the requests of the key, and those of them refused.
	Requests uint64 `json:"requests"`
	Refused  uint64 `json:"refused"`
	// Partial says that there were more keys than are tracked, so that this one may
	// have been seen before: its counts are lower bounds, and RefusedMost is an upper
	// bound of its refusals.
	Partial     bool   `json:"partial"`
	RefusedMost uint64 `json:"refused_most"`
	// Peak is the most requests in one second of the log's clock, granted or not.
	Peak uint32 `json:"peak_per_second"`
	// LongestRun is the most refusals in a row.
	LongestRun uint64 `json:"longest_run"`
}

// Key has the parts of a key as they were logged. Of one longer than 256 bytes, its first
// bytes and its SHA-256 stand for it.
type Key []string

// MarshalJSON quotes parts that are not valid UTF-8, which JSON has to be, as Go does: so
// they stay distinct. What begins with a quote is quoted too, for else it could be either.
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

// newReport returns the report of a replay of nothing yet. Its lists are empty, which
// JSON tells from null.
func newReport(o Options) Report {
	return Report{
		Files: []File{}, Malformed: []string{}, Top: []TopKey{}, Limits: []Outcome{},
		Missing: make(map[string]uint64), KeyParts: o.Keys, Cost: o.Cost.String(),
		ipv6Prefix: o.IPv6Prefix,
	}
}

// finish fills the report from the counts.
func (res *Result) finish() {
	r, rep := res.replayer, &res.Report
	rep.Requests = r.span.requests
	if rep.Requests > 0 {
		rep.First = time.Unix(0, r.span.first).UTC()
		rep.Last = time.Unix(0, r.span.last).UTC()
	}
	rep.SteppedBack = r.span.steps
	rep.longestStep = time.Duration(r.span.farthest)
	rep.LongestStep = rep.longestStep.Seconds()
	rep.Keys, rep.KeysExact = r.clients.all.total(), r.clients.all.exact()
	rep.Keys = max(rep.Keys, r.clients.refused.total()) // estimates may contradict each other
	for i, name := range r.keyer.names {
		rep.Missing[name] = r.keyer.missing[i]
	}
	rep.CostStandIns = r.standIns
	for i, t := range r.trials {
		rep.Limits = append(rep.Limits, t.outcome(r.clients.refused.with(i), rep.Keys))
	}
	if len(r.trials) == 1 {
		for _, e := range r.ranking.most(shownKeys) {
			rep.Top = append(rep.Top, topKey(e))
		}
	}
}

// outcome reports a limit that refused some of the keys.
func (t *trial) outcome(keysRefused, keys uint64) Outcome {
	s := t.limiter.Stats()
	return Outcome{
		Rate: t.rate.String(), Burst: int(t.burst),
		Granted: t.granted, Refused: t.refused, NeverGranted: t.never,
		RefusedShare: share(t.refused, t.granted+t.refused),
		KeysRefused:  keysRefused, KeysRefusedShare: share(keysRefused, keys),
		EvictedFull: s.EvictedFull, EvictedInDebt: s.EvictedInDebt,
		Forgiven: s.Forgiven, RefusedNew: s.RefusedNew,
	}
}

// absent returns an error if no request had a part of the key or the field of the cost:
// that is a wrong name, and what was replayed is not what was meant.
func (rep *Report) absent() error {
	var errs []error
	for _, name := range rep.KeyParts {
		if n := rep.Missing[name]; n > 0 && n == rep.Requests {
			errs = append(errs, fmt.Errorf("no request has a %s, as --key wants", name))
		}
	}
	if n := rep.CostStandIns; n > 0 && n == rep.Requests {
		errs = append(errs, fmt.Errorf("no request has a positive %s, as --cost wants", rep.Cost))
	}
	return errors.Join(errs...)
}

// topKey returns what is known of the key, with its parts taken apart.
func topKey(e *tracked) TopKey {
	v := &e.Value
	return TopKey{
		Key: parts(e.Key), Requests: v.requests, Refused: v.refused,
		Partial: e.Partial, RefusedMost: uint64(e.Count),
		Peak: v.peak.most, LongestRun: v.longestRun,
	}
}

// share returns part of all as a fraction, and no share of nothing.
func share(part, all uint64) float64 {
	if all == 0 {
		return 0
	}
	return float64(part) / float64(all)
}
