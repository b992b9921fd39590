package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/simulate"
)

// guide quotes the tables of the simulation and shows its charts.
const guide = "docs/adaptive.md"

// seed is the seed of all runs in the guide.
const seed = 1

// comparison has a run for each scenario and contender.
type comparison struct {
	scenarios  []simulate.Scenario
	contenders []simulate.Contender
	runs       [][]*simulate.Run
	scores     [][]simulate.Score
}

// compare runs all contenders in all scenarios.
func compare() *comparison {
	c := &comparison{scenarios: simulate.Scenarios(), contenders: simulate.Contenders()}
	c.runs = make([][]*simulate.Run, len(c.scenarios))
	c.scores = make([][]simulate.Score, len(c.scenarios))
	var all sync.WaitGroup
	for i := range c.scenarios {
		all.Go(func() {
			best := simulate.BestFixed(&c.scenarios[i], seed)
			for _, contender := range c.contenders {
				run := simulate.Simulate(&c.scenarios[i], contender, seed)
				c.runs[i] = append(c.runs[i], run)
				c.scores[i] = append(c.scores[i], run.Score(best))
			}
		})
	}
	all.Wait()
	return c
}

// generateGuide returns the guide and its charts by name.
func generateGuide(dir string) (map[string][]byte, error) {
	old, err := os.ReadFile(filepath.Join(dir, guide))
	if err != nil {
		return nil, err
	}
	c := compare()
	files := make(map[string][]byte)
	if files[guide], err = fill(old, c.table); err != nil {
		return nil, fmt.Errorf("%s: %w", guide, err)
	}
	for _, chart := range timelines {
		name := filepath.Join(filepath.Dir(guide), chart.name+".svg")
		if files[name], err = chart.svg(c); err != nil {
			return nil, fmt.Errorf("chart %s: %w", chart.name, err)
		}
	}
	return files, nil
}

// table returns a table of the guide.
func (c *comparison) table(name string) (string, error) {
	switch name {
	case "contenders":
		return c.sources(), nil
	case "goodput":
		return c.grid(func(s simulate.Score) string { return percent(s.Goodput) }), nil
	case "p99":
		return c.grid(func(s simulate.Score) string {
			return fmt.Sprintf("%d ms", s.P99.Round(time.Millisecond).Milliseconds())
		}), nil
	case "converge":
		return c.grid(func(s simulate.Score) string {
			if s.Converge == simulate.Never {
				return "never"
			}
			return fmt.Sprintf("%.0f s", s.Converge.Seconds())
		}), nil
	}
	return "", errors.New("no table " + name)
}

func percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }

// sources returns a table of the contenders.
func (c *comparison) sources() string {
	var b strings.Builder
	b.WriteString("| contender | source |\n|---|---|\n")
	for _, contender := range c.contenders {
		fmt.Fprintf(&b, "| %s | %s |\n", contender.Name, contender.Source)
	}
	return b.String()
}

// grid returns a table with a row for each scenario and a column for each contender.
func (c *comparison) grid(cell func(simulate.Score) string) string {
	var b strings.Builder
	b.WriteString("| scenario |")
	for _, contender := range c.contenders {
		fmt.Fprintf(&b, " %s |", contender.Name)
	}
	b.WriteString("\n|---|" + strings.Repeat("---:|", len(c.contenders)) + "\n")
	for i, s := range c.scenarios {
		fmt.Fprintf(&b, "| %s |", s.Title)
		for _, score := range c.scores[i] {
			fmt.Fprintf(&b, " %s |", cell(score))
		}
		b.WriteString("\n")
	}
	return b.String()
}
