package interleaving

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/proof/modelcheck"
	"github.com/seed-181794aa/ratelimit/proof/modelcheck/overlay"
	"github.com/seed-181794aa/ratelimit/proof/modelcheck/registry"
	"github.com/seed-181794aa/ratelimit/proof/planted"
)

// The tests of this file run twice. They explore variants of tb/cas, which exist only in a
// build with an overlay. A test that finds no variants runs itself again in such a build.

var (
	everything = flag.Bool("all", false, "explore all scenarios and plant all bugs: takes minutes")
	only       = flag.String("scenario", "", "explore only the scenarios with this text in their name")
	preempt    = flag.Int("preempt", 1, "preemptions in tiny maps, in wide scenarios 2 more; -1: all")
)

// TestEveryInterleaving runs every schedule of every scenario on the code that ships. Of wide
// scenarios it runs those with few preemptions.
func TestEveryInterleaving(t *testing.T) { explore(t, shipped) }

// TestInterleavingsInTinyMaps runs schedules with few preemptions on the same code with tiny maps.
func TestInterleavingsInTinyMaps(t *testing.T) { explore(t, growing, dividing) }

// TestInterleavingsWithAFrontOfOnePair runs schedules with few preemptions on the same code with
// one pair in front of the table.
func TestInterleavingsWithAFrontOfOnePair(t *testing.T) { explore(t, onePair) }

func explore(t *testing.T, codes ...overlay.Variant) {
	if !inOverlay(t) {
		return
	}
	var total modelcheck.Result
	for _, s := range scenarios {
		if !*everything && !s.small && *only == "" || !strings.Contains(s.name, *only) {
			continue
		}
		m := newOracle(s)
		for _, code := range codes {
			preemptions := -1
			switch {
			case code.Name == dividing.Name && s.maxKeys == 1: // is never divided
				continue
			case code.Name != shipped.Name && s.oneBucket:
				continue
			case code.Name == shipped.Name && s.wide && *preempt >= 0:
				preemptions = *preempt + 2
			case code.Name != shipped.Name:
				if preemptions = *preempt; s.deep && preemptions >= 0 {
					preemptions++
				}
			}
			start := time.Now()
			r := s.explore(code.Name, m, modelcheck.Options{Preemptions: preemptions})
			if r.Failure != nil {
				t.Errorf("%s, %s: %s\n%s", s.name, code.Name, r.Failure.Message, r.Failure.Trace)
			}
			t.Logf("%-44s %-9s %7d states, %6d schedules, %v", s.name, code.Name, r.States,
				r.Schedules, time.Since(start).Round(time.Millisecond))
			total.States += r.States
			total.Schedules += r.Schedules
			total.Steps += r.Steps
		}
	}
	t.Logf("%d states, %d schedules, %d steps", total.States, total.Schedules, total.Steps)
}

// TestMergingLosesNothing follows every schedule with few preemptions to its end, and finds the
// same histories as an exploration that merges states. It also explores each scenario with a
// choice before every step.
func TestMergingLosesNothing(t *testing.T) {
	if !inOverlay(t) {
		return
	}
	for _, s := range scenarios {
		if !s.small && (!*everything || !s.medium) {
			continue
		}
		merged, all := newOracle(s), newOracle(s)
		r := s.explore(shipped.Name, merged, modelcheck.Options{Preemptions: 2})
		if !*everything && r.States > 250 {
			continue // without merging they would be many more
		}
		r = s.explore(shipped.Name, all, modelcheck.Options{Preemptions: 2, NoMerge: true})
		if !maps.Equal(merged.judged, all.judged) {
			t.Errorf("%s: merging leaves %d of %d histories", s.name, len(merged.judged), len(all.judged))
		}
		every := s.explore(shipped.Name, newOracle(s),
			modelcheck.Options{Preemptions: -1, NoReduction: true})
		if every.Failure != nil {
			t.Errorf("%s: %s\n%s", s.name, every.Failure.Message, every.Failure.Trace)
		}
		t.Logf("%s: %d histories in %d schedules; %d states with every choice",
			s.name, len(all.judged), r.Schedules, every.States)
	}
}

// TestPlantedBugsAreFound plants one bug at a time into the code, and expects a failure.
func TestPlantedBugsAreFound(t *testing.T) {
	if len(registry.Variants) == 0 {
		t.Parallel()
	}
	for list, scenarios := range map[string][]scenario{
		"check-keys":         slices.Concat(onOneKey, onTheMove, onTheTable),
		"check-charges":      onCharges,
		"check-reservations": slices.Concat(onReservations, onSettlements, onLimits),
		"check-limits":       onLimits,
		"check-holds":        onHolds,
		"check-tiers":        onTiers,
	} {
		t.Run(list, func(t *testing.T) { findBugs(t, list, scenarios) })
	}
}

// findBugs expects that the bugs of a list fail. It tries schedules with few preemptions first, so
// that it finds a simple schedule.
func findBugs(t *testing.T, list string, scenarios []scenario) {
	if !inOverlay(t) {
		return
	}
	oracles := make([]*oracle, len(scenarios))
	for i, s := range scenarios {
		oracles[i] = newOracle(s)
	}
	planted.Find(t, chosen(t, list), func(_ *testing.T, b planted.Bug) string {
		for bound := range 4 {
			for i, s := range scenarios {
				r := s.explore(b.Name, oracles[i], modelcheck.Options{Preemptions: bound})
				if f := r.Failure; f != nil {
					return fmt.Sprintf("%q, preemptions: %d: %s\n%s", s.name, bound, f.Message, f.Trace)
				}
			}
		}
		return ""
	})
}

// chosen returns the bugs of the lists that match a pattern, as far as the flags choose them.
func chosen(t *testing.T, pattern string) []planted.Bug {
	t.Helper()
	bugs, err := planted.Bugs(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return planted.Chosen(bugs, *everything)
}

// inOverlay reports whether this is the build with the variants. If it is not, the calling test
// runs again in that build.
func inOverlay(t *testing.T) bool {
	t.Helper()
	if len(registry.Variants) > 0 {
		return true
	}
	t.Parallel() // with the other tests, which are processes of their own
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("there is no go command in PATH")
	}
	program := build(t)
	cmd := exec.CommandContext(t.Context(), program, "-test.v", "-test.run=^"+t.Name()+"$",
		fmt.Sprint("-all=", *everything), "-scenario="+*only, fmt.Sprint("-preempt=", *preempt),
		"-bug="+flag.Lookup("bug").Value.String())
	out, err := cmd.CombinedOutput()
	t.Log(strings.ReplaceAll(string(out), filepath.Dir(program), ""))
	if err != nil {
		t.Error(err)
	}
	return false
}

// program is this test in a build with all variants that the flags choose.
var program struct {
	sync.Mutex
	dir, name string
}

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "interleaving")
	if err != nil {
		panic(err)
	}
	program.dir = dir
	status := m.Run()
	os.RemoveAll(dir)
	os.Exit(status)
}

// build builds the program once for all tests, and returns its name.
func build(t *testing.T) string {
	t.Helper()
	program.Lock()
	defer program.Unlock()
	if program.name != "" {
		return program.name
	}
	variants := []overlay.Variant{shipped, growing, dividing, onePair}
	for _, b := range chosen(t, "check-*") {
		variants = append(variants, variantOf(b))
	}
	list := write(t, program.dir, variants)
	name := filepath.Join(program.dir, "interleaving.test")
	// To leave out what only a debugger reads saves a fifth of the compiler's time.
	cmd := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-ldflags=-w",
		"-gcflags="+overlay.Packages+"=-dwarf=false", "-o", name, "-overlay", list, ".")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	program.name = name
	return name
}

// write writes an overlay with the variants into dir, and returns the name of its list.
func write(t *testing.T, dir string, variants []overlay.Variant) string {
	t.Helper()
	list, err := overlay.Write("../..", dir, "proof/interleaving", variants)
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("the sources are missing: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return list
}
