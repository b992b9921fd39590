package replay

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/internal/suggest"
)

const (
	// maxPaths is how many groups of paths have a limit of their own.
	maxPaths = 8
	// leastOfPath is the least share of the requests that such a group has.
	leastOfPath = 0.01
	// maxPathKeys is how many keys such a group has at most: beyond, a sample of them. One takes at
	// most 700 bytes, half of them a long key, so 8 groups take at most 90 MB.
	maxPathKeys = 1 << 14
	// maxSteps is how often a fifth is taken off the share until all limits together refuse as few.
	maxSteps = 10
)

// pathGroups collects the requests to groups of paths, besides all requests. A group is a path with
// a single segment, such as /login, or all paths below a first segment, such as /api/. The groups
// are the ones with the most requests among the ones that wait in the first full queue.
type pathGroups struct {
	collect func() *suggest.Collector
	counts  map[string]uint64 // by group, until the first request is decided
	all     uint64            // their sum, and the requests without a group
	groups  []*pathGroup      // the chosen ones
	packed  []byte            // reused
}

type pathGroup struct {
	path      string
	requests  uint64
	collector *suggest.Collector
	found     *suggest.Result // of the collector at the end
}

// groupOf returns the group of a path, or nothing if the path has none: it is empty, or selectors
// and servers may read it in several ways.
func groupOf(path []byte) []byte {
	if len(path) == 0 || path[0] != '/' {
		return nil
	}
	group := path
	if end := bytes.IndexByte(path[1:], '/'); end >= 0 {
		group = path[:end+2]
	}
	for _, c := range group[1:] {
		if !nameBytes[c] {
			return nil
		}
	}
	if bytes.HasPrefix(group, []byte("/.")) || string(group) == "//" || len(group) > maxPart {
		return nil
	}
	return group
}

// nameBytes are the bytes of a segment that have one reading, and the slash.
var nameBytes = func() (is [256]bool) {
	for _, c := range []byte("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ/-_.~") {
		is[c] = true
	}
	return is
}()

// pack returns a key with a group behind it, valid until the next call.
func (p *pathGroups) pack(key, path []byte) []byte {
	group := groupOf(path)
	if p.counts != nil {
		p.all++
		p.counts[string(group)]++
	}
	p.packed = binary.AppendUvarint(p.packed[:0], uint64(len(key)))
	return append(append(p.packed, key...), group...)
}

func unpackGroup(packed []byte) (key, group []byte) {
	size, n := binary.Uvarint(packed)
	return packed[n:][:size], packed[n+int(size):]
}

// choose chooses the groups by the requests so far.
func (p *pathGroups) choose() {
	for path, n := range p.counts {
		if path != "" && float64(n) >= leastOfPath*float64(p.all) {
			p.groups = append(p.groups, &pathGroup{path: path, requests: n})
		}
	}
	p.counts = nil
	slices.SortFunc(p.groups, func(a, b *pathGroup) int {
		return cmp.Or(cmp.Compare(b.requests, a.requests), cmp.Compare(a.path, b.path))
	})
	p.groups = p.groups[:min(len(p.groups), maxPaths)]
	for _, g := range p.groups {
		g.collector, g.requests = p.collect(), 0
	}
}

// add adds a request of a key to its group, if it is one of the chosen ones.
func (p *pathGroups) add(key, group []byte, at pending, cost uint64) {
	if p.counts != nil {
		p.choose()
	}
	for _, g := range p.groups {
		if g.path == string(group) {
			g.requests++
			g.collector.Add(key, at.time, cost, at.path)
			return
		}
	}
}

// end returns the groups of a whole log in the order of their paths.
func (p *pathGroups) end(whole *suggest.Collector) []*pathGroup {
	for _, g := range p.groups {
		g.found = g.collector.Result(whole)
	}
	slices.SortFunc(p.groups, func(a, b *pathGroup) int { return cmp.Compare(a.path, b.path) })
	return p.groups
}

// PathLimit is the limit that a group of paths needs by itself.
type PathLimit struct {
	// Path is a path, or if it ends with a slash and is not "/" all paths below it.
	Path     string `json:"path"`
	Requests uint64 `json:"requests"`
	// Clients is an estimate from one client in OneIn, and so is KeysRefused of the Limit.
	Clients uint64 `json:"clients"`
	OneIn   uint64 `json:"one_in"`
	// Limit is found as the suggested limit of all requests is.
	Limit *Limit `json:"limit"`
	// Stricter reports that a client can take at most half as much in a minute as under the limit of
	// all requests. Only then the limit is in the policy: another one would refuse hardly anything.
	Stricter bool `json:"stricter"`

	name  string // in a policy
	found *suggest.Result
}

// findByPath finds limits that together refuse at most the share of the clients, and returns the
// one of all requests, if there is one. Each limit gets the same share, which becomes smaller until
// that is so.
func (s *Suggestion) findByPath(
	o *Options, found *suggest.Result, groups []*pathGroup, span time.Duration,
) (all *Limit) {
	share := o.Suggest.fraction
	for i := range maxSteps + 1 {
		if i == maxSteps {
			share = 0
		}
		if all = s.find(o, found, share, span); all == nil {
			return nil
		}
		s.Paths = []PathLimit{}
		for _, g := range groups {
			bursts := burstsFor(o, g.found, share)
			if l := leastLimit(bursts, o.leastBurst(), g.found, span); l != nil {
				s.Paths = append(s.Paths, PathLimit{
					Path: g.path, Requests: g.requests, OneIn: g.found.OneIn,
					Clients: uint64(len(g.found.Clients)) * g.found.OneIn,
					Limit:   l, Stricter: 2*l.perMinute() <= all.perMinute(), found: g.found,
				})
			}
		}
		s.Together, s.TogetherOneIn = together(s.plan(all))
		if float64(s.Together) <= o.Suggest.fraction*float64(found.Matter()) {
			break
		}
		share *= 0.8
	}
	return all
}

// together returns how many clients that matter are ever refused by any limit of a plan, as an
// estimate from one in oneIn. A client is refused first by a limit that would refuse it alone, so these are the
// clients that a limit refuses by itself.
func together(plan []PathLimit) (clients, oneIn uint64) {
	for _, p := range plan {
		oneIn = max(oneIn, p.found.OneIn)
	}
	refused := make(map[string]bool)
	for _, p := range plan {
		for _, c := range p.found.Refused(p.Limit.index, p.Limit.Burst) {
			if p.found.Matters(c) && suggest.InSample(c.Key, oneIn) {
				refused[c.Key] = true
			}
		}
	}
	return uint64(len(refused)) * oneIn, oneIn
}

// plan returns the limit of all requests and the limits of the paths that are stricter, with names.
func (s *Suggestion) plan(all *Limit) []PathLimit {
	plan := []PathLimit{{name: "suggested", Limit: all, found: s.found}}
	for _, p := range s.Paths {
		if !p.Stricter {
			continue
		}
		p.name = nameOf(p.Path)
		for slices.ContainsFunc(plan, func(other PathLimit) bool { return other.name == p.name }) {
			p.name = fmt.Sprintf("%s-%d", p.name, len(plan))
		}
		plan = append(plan, p)
	}
	return plan
}

// writePaths writes a table of the limits by path.
func (rep *Report) writePaths(b *strings.Builder) {
	s := rep.Suggestion
	b.WriteString("\nLimits by path, each by itself:\n\n")
	table := columns(b)
	fmt.Fprintln(table, "requests\tclients\trefused\t  limit\t  path")
	all := PathLimit{Path: "all", Requests: rep.Requests, Clients: rep.Keys, OneIn: 1, Limit: rep.Limit}
	sampled := ""
	for _, p := range append([]PathLimit{all}, s.Paths...) {
		if p.Stricter {
			p.Path = "> " + p.Path
		}
		about := ""
		if p.OneIn > 1 {
			about = "≈ "
			sampled = "≈: an estimate, because the path has more than 16,384 clients.\n"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t  %s, burst %s\t  %s\n", grouped(p.Requests),
			about+grouped(p.Clients), about+grouped(p.Limit.KeysRefused), p.Limit.Rate,
			grouped(p.Limit.Burst), p.Path)
	}
	table.Flush()
	about := ""
	if s.TogetherOneIn > 1 {
		about = "about "
	}
	fmt.Fprintf(b, "\n%s>: in the policy, because it is far stricter than the limit of all requests.\n"+
		"Together, the limits of the policy refuse %s%s that count for the share.\n", sampled, about,
		ofAll(s.Together, s.found.Matter(), "client", "clients"))
}
