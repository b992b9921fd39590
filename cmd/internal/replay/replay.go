package replay

import (
	"context"
	"errors"
	"net/netip"

	"github.com/seed-181794aa/ratelimit/cmd/internal/accesslog"
	"github.com/seed-181794aa/ratelimit/httplimit/policy"
)

// Options say what to do with the requests of a log: suggest a limit, or decide them by a policy or
// by a limit, perhaps beside other algorithms.
type Options struct {
	// Rate and Burst are the limit.
	Rate  Rate
	Burst int
	// Algorithms name the algorithms to compare under the limit.
	Algorithms []string
	// Suggest asks for a limit at one of the Rates that refuses at most this share of the clients.
	Suggest Share
	Rates   []Rate
	// ByPath asks for limits of the paths with the most requests, too. Export is what the suggestion
	// is printed as: policy, caddy or nginx, or empty.
	ByPath bool
	Export string
	// Policy is replayed instead of a limit, if it is not nil.
	Policy *policy.Policy

	// Schema says what is known of the logs.
	Schema accesslog.Schema
	// Keys name the parts of a key: ip, user, path, host or fields of a log that names its fields.
	Keys []string
	// Trusted are the networks of proxies whose X-Forwarded-For is believed. IPv6Prefix is
	// how many bits of an IPv6 address make a client, 1 to 128.
	Trusted    []netip.Prefix
	IPv6Prefix int
	// Cost is the cost of a request.
	Cost Cost
	// MaxKeys bounds the table of each limiter.
	MaxKeys int

	// Picture keeps what WriteHTML needs, for a limit or a suggestion.
	Picture bool
	// All makes the text have all keys of the report.
	All bool
}

// Result is the outcome of a replay: the Report, and what the page shows besides it.
type Result struct {
	Report   Report
	timeline *timeline // nil without Options.Picture
	curve    *curve    // of a suggested limit with Options.Picture
}

// Run replays the inputs as one log, by time. If an input cannot be read to its end, or has no
// valid line, Run goes on with the others. The result covers the requests that were replayed, and
// the error joins the errors of the inputs. If ctx is done, Run ends early, which is not an error,
// and marks the Report as interrupted.
func Run(ctx context.Context, o Options, inputs []Input) (*Result, error) {
	m, err := newMode(&o)
	if err != nil {
		return nil, err
	}
	r := &replayer{mode: m, queue: newQueue(queueRequests), report: newReport(&o)}
	if o.Picture {
		r.timeline = newTimeline()
	}
	errs := r.replayInputs(ctx, inputs, &o)
	if r.report.NoAnswer != "" { // no number from a wrong order
		res := &Result{Report: newReport(&o), timeline: newTimeline()}
		res.Report.Files, res.Report.NoAnswer = r.report.Files, r.report.NoAnswer
		return res, errors.Join(errs...)
	}
	res := &Result{Report: r.report, timeline: r.timeline}
	res.Report.Busiest = r.busiest()
	m.fill(res)
	return res, errors.Join(errs...)
}

// mode is what a replay does with the requests of a log.
type mode interface {
	// fields returns the extra fields that pack reads, in the order of Record.Fields.
	fields() []string
	// pack returns what decide needs of a request: its cost, and a text that is valid until the next
	// call.
	pack(rec *accesslog.Record, format accesslog.Format) (text []byte, cost float64)
	// decide decides a packed request. The times never step back, unless a request is late.
	decide(p pending, text []byte) (granted bool, err error)
	// fill fills in the outcome of the requests so far.
	fill(res *Result)
}

// newMode returns the mode that the options ask for.
func newMode(o *Options) (mode, error) {
	switch {
	case o.Policy != nil:
		return newPolicyMode(o)
	case o.Suggest.isSet():
		return newSuggestionMode(o)
	case len(o.Algorithms) > 0:
		return newAlgorithmMode(o)
	}
	return newLimitMode(o)
}
