package replay

import (
	"errors"
	"fmt"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/internal/accesslog"
)

const topKeys = 100

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
	// Malformed has the first five malformed lines, as file:line: reason: text, and Others the first
	// five lines that are not requests.
	Malformed []string `json:"malformed"`
	Others    []string `json:"others"`
	// NoAnswer says why the report has no answer. Doubts say why the answer may be wrong.
	NoAnswer string   `json:"no_answer,omitempty"`
	Doubts   []string `json:"doubts"`

	// Requests is the number of valid lines that are not too late. Each line is a request.
	Requests uint64 `json:"requests"`
	// First and Last are the earliest and the latest time of a request. They are left out
	// if there is no request.
	First time.Time `json:"first,omitzero"`
	Last  time.Time `json:"last,omitzero"`
	// EvictedInDebt counts the buckets that left a full table before they were full themselves: more
	// was granted than the limits allow.
	EvictedInDebt uint64 `json:"evicted_in_debt"`
	// Busiest is the second with the most requests. It is left out if there is no request.
	Busiest *Busiest `json:"busiest,omitempty"`

	// KeyParts is the flag --key.
	KeyParts []string `json:"key_parts"`
	// Keys is the number of distinct keys. If KeysExact is false, there are more, and no count of keys
	// has the others.
	Keys      uint64 `json:"keys"`
	KeysExact bool   `json:"keys_exact"`
	// Missing counts the requests without a part of the key, by part. They share the
	// bucket of the empty value.
	Missing map[string]uint64 `json:"missing"`
	// Clients says what is remarkable about the clients, if ip is in the key.
	Clients Clients `json:"clients"`

	// Limit was replayed or is suggested. It is left out under a policy, and if there is no answer.
	Limit *Limit `json:"limit,omitempty"`
	// Kinds has the kinds of clients, and whom of them the limit refuses.
	Kinds []Kind `json:"kinds"`
	// Top has up to 100 keys: the ones that the limit refuses most, or that need the greatest bursts
	// under the suggested limit, and then the ones with the most requests. It is empty under a policy.
	Top []TopKey `json:"top"`
	// Algorithms has an outcome for each name in --algorithm.
	Algorithms []AlgorithmOutcome `json:"algorithms"`
	// Suggestion is left out unless a limit is asked for.
	Suggestion *Suggestion `json:"suggestion,omitempty"`
	// Policy is left out unless --policy names one. Its rules have their own keys. So
	// Keys is 0 then, and Missing has no counts.
	Policy *PolicyOutcome `json:"policy,omitempty"`

	options  *Options
	timeline timeline
	hint     string // where the log may have the client
	remark   string // what may be a doubt
}

// Busiest is the second of a log with the most requests of all keys.
type Busiest struct {
	Second   time.Time `json:"second"`
	Requests uint32    `json:"requests"`
}

// File is one input.
type File struct {
	// Name is the path as it was given, or "stdin".
	Name string `json:"name"`
	// Format is a name such as common, combined or json, or empty if no line was valid.
	Format accesslog.Format `json:"format"`
	// Lines counts the lines that are not blank, Malformed the ones that should be a request and are
	// not, Others directives and messages of programs, and Late the requests that are left out because
	// they stand behind half a queue of later ones or more.
	Lines     int64 `json:"lines"`
	Malformed int64 `json:"malformed"`
	Others    int64 `json:"others"`
	Late      int64 `json:"late"`
	// NoZone reports that times have no zone, and are read as UTC.
	NoZone bool `json:"no_zone"`
}

// Limit is a limit that was replayed or suggested, and what it refuses.
type Limit struct {
	// Rate is always with its unit: "5/s", "300/m". Burst is in tokens.
	Rate  Rate   `json:"rate"`
	Burst uint64 `json:"burst"`
	// KeysRefused is how many keys are refused at least once.
	KeysRefused uint64 `json:"keys_refused"`
	// Granted and Refused count requests. They are 0 and Uncounted is true under a suggested limit if
	// there are more than 4,194,304 requests.
	Granted   uint64 `json:"granted"`
	Refused   uint64 `json:"refused"`
	Uncounted bool   `json:"uncounted,omitempty"`

	index int // of its rate in a suggestion
}

// TopKey is one of the keys that were refused most or sent most.
type TopKey struct {
	// Key has the parts of the key, in the order of KeyParts. A part longer than 256 bytes is replaced
	// by its SHA-256.
	Key []string `json:"key"`
	// Requests counts the requests of the key, and Refused the refused ones among them. Refused is 0
	// if the limit is Uncounted.
	Requests uint64 `json:"requests"`
	Refused  uint64 `json:"refused"`
	// Peak is the most requests in one second of the log, granted or not.
	Peak uint32 `json:"peak_per_second"`
	// Habit is what the log shows of the client: the name of a crawler in its User-Agent, and the
	// paths that most of its requests ask for.
	Habit string `json:"habit,omitempty"`
}

// newReport returns a report without any request. Its lists are empty and not nil, because
// JSON would have nil as null.
func newReport(o *Options) *Report {
	return &Report{
		Files: []File{}, Malformed: []string{}, Others: []string{}, Doubts: []string{}, Kinds: []Kind{},
		Top: []TopKey{}, Algorithms: []AlgorithmOutcome{}, Missing: make(map[string]uint64),
		KeyParts: o.Keys, options: o,
	}
}

// checkNames returns an error if no request has a part of the key, because its name is then a
// mistake.
func (rep *Report) checkNames() error {
	if rep.Policy != nil {
		return rep.Policy.missing
	}
	var errs []error
	for _, name := range rep.KeyParts {
		if n := rep.Missing[name]; n > 0 && n == rep.Requests {
			err := fmt.Errorf("no request has %s, which is in --key", name)
			if name == "ip" && rep.hint != "" {
				err = fmt.Errorf("%w; %s", err, rep.hint)
			}
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// maxLate is which part of the requests of a file may be left out because they stand too far behind
// later ones: the line of a download of hours does. The file of more is not in the order of time.
const maxLate = 0.001

// checkOrder returns an error about late requests: a doubt if they are few, otherwise no answer.
func (rep *Report) checkOrder(f *File) error {
	if f.Late == 0 {
		return nil
	}
	err := fmt.Errorf("%s: %s of %s lines come too late", f.Name, grouped(f.Late), grouped(f.Lines))
	if float64(f.Late) <= maxLate*float64(f.Lines) {
		err = fmt.Errorf("%w, and are left out", err)
		rep.Doubts = append(rep.Doubts, err.Error()+".")
		return err
	}
	rep.NoAnswer = "The log is not in the order of time."
	return fmt.Errorf("%w: want the lines in the order of time, such as from tb replay"+
		" access.log*, which merges several files, or a file that is sorted by time", err)
}

// checkAnswer returns an error for programs if there is no answer, or if it may be wrong.
func (rep *Report) checkAnswer() error {
	var errs []error
	if rep.NoAnswer != "" {
		errs = append(errs, errors.New(rep.NoAnswer))
	}
	for _, doubt := range rep.Doubts {
		errs = append(errs, fmt.Errorf("the answer may be wrong: %s", doubt))
	}
	return errors.Join(errs...)
}

func share(part, all uint64) float64 {
	if all == 0 {
		return 0
	}
	return float64(part) / float64(all)
}
