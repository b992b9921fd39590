package main

import (
	"fmt"
	"strings"

	"github.com/seed-181794aa/ratelimit/internal/coherence"
)

// coresTable returns the throughput of one hot key on simulated machines.
func coresTable(*results) (string, error) {
	const time = 2e5 // ns
	counts := []int{1, 2, 4, 8, 16, 32, 64, 128}
	var b strings.Builder
	b.WriteString("| calls a µs, by cores | transfer |")
	for _, n := range counts {
		fmt.Fprintf(&b, " %d |", n)
	}
	b.WriteString("\n|---|---:|" + strings.Repeat("---:|", len(counts)) + "\n")
	for _, p := range coherence.Programs() {
		for _, transfer := range []float64{20, 60, 120} {
			fmt.Fprintf(&b, "| %s | %g ns |", p.Name, transfer)
			for _, n := range counts {
				calls := 0
				costs := coherence.Costs{Transfer: transfer, Hit: 1, Atomic: 6}
				for _, of := range coherence.Run(costs, n, time, p.New(n)) {
					calls += of
				}
				fmt.Fprintf(&b, " %.1f |", float64(calls)/time*1000)
			}
			b.WriteString("\n")
		}
	}
	return b.String(), nil
}
