package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// Each metric that an alert or a dashboard names is one that docs list. A test of each command
// keeps these lists true.
func TestMonitoringNamesMetricsThatExist(t *testing.T) {
	documented := map[string]bool{}
	for _, name := range []string{"proxy", "rls", "redis"} {
		text, err := os.ReadFile("../../docs/" + name + ".md")
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile("(?m)^\\| `(tb_[a-z_]+)`").FindAllSubmatch(text, -1) {
			documented[string(m[1])] = true
		}
	}
	files, err := filepath.Glob("../../packaging/monitoring/*")
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Ext(name) == ".json" && !json.Valid(text) {
			t.Errorf("%s is not JSON", name)
		}
		for _, m := range regexp.MustCompile(`\b(tb_[a-z_]+?)(_bucket)?\b`).FindAllSubmatch(text, -1) {
			if named++; !documented[string(m[1])] {
				t.Errorf("%s: no metric %s", name, m[0])
			}
		}
	}
	if named < 25 {
		t.Errorf("%d metrics are named, want at least 25", named)
	}
}
