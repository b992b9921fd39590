package replay

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/internal/suggest"
	"github.com/seed-181794aa/ratelimit/tb"
)

const (
	// maxPaths is how many groups of paths have a limit of their own.
	maxPaths = 8
	// leastOfPath is the least share of the requests that such a group has.
	leastOfPath = 0.01
	// maxSteps is how often a fifth is taken off the share until all limits together refuse as few.
	maxSteps = 10
)

// pathGroups collects the requests to groups of paths, besides all requests. A group is a path with
// a single segment, such as /login, or all paths below a first segment, such as /api/. The groups
// are the ones with the most requests among the ones that wait in the first full queue.
type pathGroups struct {
	rates  []tb.Limit
	byPath map[string]*PathLimit // the chosen ones, once a request was decided
	chosen bool                  // whether one was
	all    uint64                // requests until then
}

// groupOf returns the group of a path as selectors read it, or nothing, valid as long as the path.
func groupOf(path []byte) string {
	group, ok := view(path), bytes.HasPrefix(path, []byte("/"))
	if strings.Contains(group, "//") || strings.Contains(group, "/.") || strings.Contains(group, "%") {
		group, _, ok = resolve(group)
	}
	if !ok || strings.HasPrefix(group, "/.") {
		return ""
	}
	if end := strings.IndexByte(group[1:], '/'); end >= 0 {
		group = group[:end+2]
	}
	for _, c := range []byte(group) { // bytes that have one reading, and the slashes
		isWord := '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
		if !isWord && strings.IndexByte("/-_.~", c) < 0 || len(group) > maxPart {
			return ""
		}
	}
	return group
}

// of returns the group of a path, or nil if it is not chosen.
func (p *pathGroups) of(path []byte) *PathLimit {
	group := groupOf(path)
	g := p.byPath[group]
	if !p.chosen {
		if p.all++; g == nil {
			g = &PathLimit{Path: strings.Clone(group)}
			p.byPath[g.Path] = g
		}
		g.Requests++
	}
	return g
}

func (p *pathGroups) choose() {
	delete(p.byPath, "")
	most := slices.SortedFunc(maps.Values(p.byPath), func(a, b *PathLimit) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Path, b.Path))
	})
	clear(p.byPath)
	p.chosen = true
	for _, g := range most[:min(len(most), maxPaths)] {
		if float64(g.Requests) >= leastOfPath*float64(p.all) {
			g.collector = suggest.New(p.rates, false)
			p.byPath[g.Path] = g
		}
	}
}

func (p *pathGroups) add(at pending) {
	if !p.chosen {
		p.choose()
	}
	if g := at.group; g != nil && g.collector != nil {
		g.collector.Add(at.client.number, at.time)
	}
}

// end returns the groups of a whole log with clients of some kinds, in the order of their paths.
func (p *pathGroups) end(kinds []suggest.Kind) (groups []*PathLimit) {
	for _, path := range slices.Sorted(maps.Keys(p.byPath)) {
		g := p.byPath[path]
		g.found = g.collector.Result(kinds)
		g.Requests = g.found.Requests()
		groups = append(groups, g)
	}
	return groups
}

// PathLimit is the limit that a group of paths needs by itself.
type PathLimit struct {
	// Path is a path, or if it ends with a slash and is not "/" all paths below it.
	Path     string `json:"path"`
	Requests uint64 `json:"requests"`
	Clients  uint64 `json:"clients"`
	// Limit is found as the suggested limit of all requests is.
	Limit *Limit `json:"limit"`
	// Stricter reports that a client can take at most half as much in a minute as under the limit of
	// all requests. Only then the limit is in the policy: another one would refuse hardly anything.
	Stricter bool `json:"stricter"`

	name      string             // in a policy
	collector *suggest.Collector // nil if the group is not chosen
	found     *suggest.Result    // of the collector at the end
}

// findByPath finds limits that together refuse at most the share of the clients, and returns the
// one of all requests, if there is one. Each limit gets the same share, which becomes smaller until
// that is so.
func (s *Suggestion) findByPath(
	o *Options, clients int, groups []*PathLimit, span time.Duration,
) (all *Limit) {
	found, share := s.found, s.Share
	for i := range maxSteps + 1 {
		if i == maxSteps {
			share = 0
		}
		s.Rates = burstsFor(o, found, share)
		if all = leastLimit(s.Rates, span); all == nil {
			return nil
		}
		s.Paths = []PathLimit{}
		for _, g := range groups {
			p := *g
			p.Limit = leastLimit(burstsFor(o, p.found, share), span)
			if p.Limit != nil {
				p.Clients, p.Limit.KeysRefused = p.found.Clients(p.Limit.index, p.Limit.Burst)
				p.Limit.Uncounted = true
				p.Stricter = 2*p.Limit.perMinute() <= all.perMinute()
				s.Paths = append(s.Paths, p)
			}
		}
		s.Together = s.together(all, clients)
		if float64(s.Together) <= s.Share*float64(found.Matter()) {
			break
		}
		share *= 0.8
	}
	s.Rates = burstsFor(o, found, s.Share)
	return all
}

// together returns how many clients that matter are ever refused by any limit of the policy. A
// client is refused first by a limit that would refuse it alone, so these are the clients that a
// limit refuses by itself.
func (s *Suggestion) together(all *Limit, clients int) (n uint64) {
	plan := s.plan(all)
	for client := range uint32(clients) {
		if s.found.Matters(client) && slices.ContainsFunc(plan, func(p PathLimit) bool {
			return p.found.Need(client, p.Limit.index) > p.Limit.Burst
		}) {
			n++
		}
	}
	return n
}

var notName = regexp.MustCompile(`[/._~-]`)

// plan returns the limit of all requests and the limits of the paths that are stricter, with names.
func (s *Suggestion) plan(all *Limit) []PathLimit {
	plan := []PathLimit{{name: "suggested", Limit: all, found: s.found}}
	for _, p := range s.Paths {
		if !p.Stricter {
			continue
		}
		p.name = cmp.Or(strings.Trim(notName.ReplaceAllString(p.Path, "-"), "-"), "root")
		for slices.ContainsFunc(plan, func(other PathLimit) bool {
			return strings.EqualFold(other.name, p.name) // variables of nginx have no case
		}) {
			p.name = fmt.Sprintf("%s-%d", p.name, len(plan))
		}
		plan = append(plan, p)
	}
	return plan
}

func (rep *Report) pathTable() table {
	t := table{ID: "paths", Title: "Limits by path, each by itself", Of: "path",
		Head: []string{"requests", "clients", "refused", "limit"}}
	if rep.Limit == nil || !rep.options.ByPath {
		return t
	}
	s := rep.Suggestion
	all := PathLimit{Path: "all", Requests: rep.Requests, Clients: rep.Keys, Limit: rep.Limit}
	for _, p := range append([]PathLimit{all}, s.Paths...) {
		if p.Stricter {
			p.Path = "> " + p.Path
		}
		t.add(p.Path, grouped(p.Requests), grouped(p.Clients), grouped(p.Limit.KeysRefused),
			fmt.Sprintf("%s, burst %s", p.Limit.Rate, grouped(p.Limit.Burst)))
	}
	t.Note = fmt.Sprintf(">: in the policy, because it is far stricter than the limit of all"+
		" requests.\nTogether, the limits of the policy refuse %s that count for the share.\n",
		ofAll(s.Together, s.found.Matter(), "client"))
	return t
}
