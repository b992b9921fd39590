// Package compare compares how tb-rls and envoyproxy/ratelimit read configurations. It is not a
// package of this module, because it needs internal packages of cmd: see scripts/measure rls-config.
package compare

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	envoy "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	theirs "github.com/envoyproxy/ratelimit/src/config"
	"github.com/envoyproxy/ratelimit/src/settings"
	"github.com/envoyproxy/ratelimit/src/stats"
	gostats "github.com/lyft/gostats"

	ours "github.com/seed-181794aa/ratelimit/cmd/internal/rls/config"
)

var configurations = flag.Uint64("configurations", 20_000, "random configurations to compare")

// The version of envoyproxy/ratelimit that is compared knows patterns with a * at the end only.
var (
	keys     = []string{"k", "l", "m*n"}
	patterns = []string{"", "a", "b", "ab", "aab", "a*", "ab*", "*"}
	values   = []string{"", "a", "b", "ab", "aab", "axb", "zz", "abx"}
)

func oneOf(r *rand.Rand, all []string) string { return all[r.IntN(len(all))] }

// generate returns random descriptors in YAML.
func generate(r *rand.Rand, depth int, indent string) string {
	var text strings.Builder
	seen := map[string]bool{}
	for range 1 + r.IntN(5) {
		key, value := oneOf(r, keys), oneOf(r, patterns)
		if seen[key+value] {
			continue
		}
		seen[key+value] = true
		add := func(probable bool, format string, args ...any) {
			if probable {
				fmt.Fprintf(&text, indent+format+"\n", args...)
			}
		}
		isPattern := strings.Contains(value, "*")
		add(true, "- key: %s", key)
		add(value != "", "  value: '%s'", value)
		add(r.IntN(3) > 0, "  rate_limit: {unit: minute, requests_per_unit: %d}", 1+r.IntN(1e6))
		add(isPattern && r.IntN(2) == 0, "  share_threshold: true")
		add(r.IntN(4) == 0, "  detailed_metric: true")
		add(r.IntN(4) == 0, "  value_to_metric: true")
		if depth < 3 && r.IntN(2) == 0 {
			add(true, "  descriptors:")
			text.WriteString(generate(r, depth+1, indent+"  "))
		}
	}
	return text.String()
}

// theirKey returns what distinguishes the counters of envoyproxy/ratelimit.
func theirKey(l *theirs.RateLimit, entries []*envoy.RateLimitDescriptor_Entry) string {
	key := ""
	for i, e := range entries {
		value := e.Value
		if i < len(l.ShareThresholdKeyPattern) && l.ShareThresholdKeyPattern[i] != "" {
			value = l.ShareThresholdKeyPattern[i]
		}
		key += e.Key + "\x00" + value + "\x00"
	}
	return key
}

// withoutEmpty returns a path in metrics without the _ that envoyproxy/ratelimit writes before an
// empty value.
func withoutEmpty(path string) string {
	return strings.ReplaceAll(path+".", "_.", ".")
}

// Both find the same rule for a descriptor, give the same descriptors one bucket, and have the same
// paths in metrics.
func TestRandomConfigurations(t *testing.T) {
	matched := 0
	for seed := range *configurations {
		r := rand.New(rand.NewPCG(seed, 1))
		text := "domain: d\ndescriptors:\n" + generate(r, 0, "")
		manager := stats.NewStatManager(gostats.NewStore(gostats.NewNullSink(), false),
			settings.Settings{})
		their := theirs.NewRateLimitConfigImpl([]theirs.RateLimitConfigToLoad{{
			Name: "f", ConfigYaml: theirs.ConfigFileContentToYaml("f", text),
		}}, manager, false)
		our, err := ours.Parse([]ours.File{{Name: "f", Text: text}}, false)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		ourKeys, theirKeys := map[string]string{}, map[string]string{}
		for range 30 {
			d := &envoy.RateLimitDescriptor{}
			for range 1 + r.IntN(4) {
				d.Entries = append(d.Entries,
					&envoy.RateLimitDescriptor_Entry{Key: oneOf(r, keys), Value: oneOf(r, values)})
			}
			want, got := their.GetLimit(context.Background(), "d", d), our.Domain("d").Match(d.Entries)
			if (want == nil) != (got == nil) ||
				want != nil && want.Limit.RequestsPerUnit != got.RequestsPerUnit {
				t.Fatalf("%v: %+v, want %+v\n%s", d, got, want, text)
			}
			if want == nil {
				continue
			}
			matched++
			key, _ := got.Key(d.Entries, nil)
			key = got.ID + "\x00" + key
			theirs := theirKey(want, d.Entries)
			if other, ok := ourKeys[key]; ok && other != theirs {
				t.Fatalf("%v shares a bucket with %q\n%s", d, other, text)
			}
			if other, ok := theirKeys[theirs]; ok && other != key {
				t.Fatalf("%v shares no bucket with %q\n%s", d, other, text)
			}
			ourKeys[key], theirKeys[theirs] = theirs, key
			path := "d." + string(got.AppendPath(nil, d.Entries))
			if withoutEmpty(path) != withoutEmpty(want.Stats.Key) {
				t.Fatalf("%v: %s, want %s\n%s", d, path, want.Stats.Key, text)
			}
		}
	}
	t.Logf("%d descriptors matched", matched)
}
