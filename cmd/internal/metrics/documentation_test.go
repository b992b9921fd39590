package metrics

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/tb"
)

// The table in docs/proxy.md has exactly the metrics that are served, with their types and
// labels, and the values of all labels but set and rule. The names follow the recommendations of
// Prometheus.
func TestDocumentation(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/proxy.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{} // name, type and labels of a metric, and its row
	for line := range strings.Lines(string(doc)) {
		if strings.HasPrefix(line, "| `tb_") {
			cells := strings.Split(line, "|")
			words := regexp.MustCompile("[a-z_]+").FindAllString(strings.Join(cells[1:4], "|"), -1)
			slices.Sort(words[2:])
			documented[fmt.Sprint(words)] = line
		}
	}
	limiter, err := httplimit.New(httplimit.Rules(httplimit.Rule{
		Name: "r", Limit: tb.Limit{Capacity: 1, Tokens: 1, Per: time.Second},
	}))
	if err != nil {
		t.Fatal(err)
	}
	m := New(limiter, func() uint64 { return 0 })
	if problems, err := testutil.GatherAndLint(m); err != nil || len(problems) > 0 {
		t.Error(problems, err)
	}
	families, err := m.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "tb_") {
			continue
		}
		words := []string{f.GetName(), strings.ToLower(f.GetType().String())}
		for _, l := range f.GetMetric()[0].GetLabel() { // sorted by name
			words = append(words, l.GetName())
		}
		row, ok := documented[fmt.Sprint(words)]
		if !ok {
			t.Errorf("docs/proxy.md has no %v", words)
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				value := "`" + l.GetValue() + "`"
				if l.GetName() != "set" && l.GetName() != "rule" && !strings.Contains(row, value) {
					t.Errorf("%s: no %s=%s in docs/proxy.md", f.GetName(), l.GetName(), value)
				}
			}
		}
		delete(documented, fmt.Sprint(words))
	}
	for words := range documented {
		t.Errorf("docs/proxy.md has %s, which is not served", words)
	}
}
