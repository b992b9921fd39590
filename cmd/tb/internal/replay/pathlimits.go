package replay

import (
	"fmt"
	"slices"
	"strings"

	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/suggest"
)

// PathLimit is the limit that a group of paths needs by itself.
type PathLimit struct {
	// Path is a path, or if it ends with a slash and is not "/" all paths below it.
	Path     string `json:"path"`
	Requests uint64 `json:"requests"`
	Clients  int    `json:"clients"`
	// Limit is found as the suggested limit of all requests is.
	Limit *SuggestedLimit `json:"limit"`
	// Stricter reports that a client can take at most half as much in a minute as under the limit of all
	// requests. Only then the limit is in the policy: another one would refuse hardly anything.
	Stricter bool `json:"stricter"`

	found *suggest.Result
}

// addPaths adds the limits of groups of paths.
func (s *Suggestion) addPaths(o *Options, groups []*pathGroup) {
	for _, g := range groups {
		l := newSuggestion(o, g.found).Limit
		if l == nil {
			continue
		}
		s.Paths = append(s.Paths, PathLimit{
			Path: g.path, Requests: g.requests, Clients: len(g.found.Clients), Limit: l,
			Stricter: 2*l.PerMinute <= s.Limit.PerMinute, found: g.found,
		})
	}
}

// plan returns the limit of all requests and those of the paths that are stricter.
func (s *Suggestion) plan() []planned {
	plan := []planned{{name: "suggested", limit: s.Limit}}
	for _, p := range s.Paths {
		if !p.Stricter {
			continue
		}
		name := nameOf(p.Path)
		if slices.ContainsFunc(plan, func(other planned) bool { return other.name == name }) {
			name = fmt.Sprintf("%s-%d", name, len(plan))
		}
		plan = append(plan, planned{name, p.Path, p.Limit})
	}
	return plan
}

// writePaths writes a table of the limits by path, with what several limiters refuse.
func (s *Suggestion) writePaths(b *strings.Builder, requests uint64) {
	b.WriteString("\nLimits by path, each by itself, and the requests that they refuse as a token bucket, in" +
		" nginx\nand in Envoy:\n\n")
	table := columns(b)
	fmt.Fprintln(table, "requests\tclients\trefused\ttokens\tnginx\tEnvoy\t  limit\t  path")
	row := func(path string, requests uint64, clients int, l *SuggestedLimit, found *suggest.Result) {
		_, nginx := nginxLimit(l)
		_, envoy := envoyLimit(l)
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t  %s, burst %s\t  %s\n", grouped(requests),
			grouped(clients), grouped(l.Refused),
			refusedText(found, "gcra", l.rate.limit(int(l.Burst))), refusedText(found, "gcra", nginx),
			refusedText(found, "fixed-window", envoy), l.Rate, grouped(l.Burst), path)
	}
	row("all", requests, s.Clients, s.Limit, s.found)
	for _, p := range s.Paths {
		path := p.Path
		if p.Stricter {
			path = "> " + path
		}
		row(path, p.Requests, p.Clients, p.Limit, p.found)
	}
	table.Flush()
	b.WriteString("\n>: in the policy, because it is far stricter than the limit of all requests.\n")
}
