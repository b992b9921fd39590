package planted

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestSurvivorsStandInTheCode requires that survivors.tsv names functions that there are.
func TestSurvivorsStandInTheCode(t *testing.T) {
	file, err := os.Open("survivors.tsv")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	table := csv.NewReader(file)
	table.Comma, table.LazyQuotes = '\t', true
	rows, err := table.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	quoted := regexp.MustCompile("`[^`]+`")
	for _, row := range rows[1:] {
		for _, pkg := range quoted.FindAllString(row[0], -1) {
			code := sourceOf(t, strings.Trim(pkg, "`"))
			for _, where := range quoted.FindAllString(row[1], -1) {
				name := strings.Trim(where, "`")
				name = name[strings.LastIndex(name, ".")+1:]
				if !regexp.MustCompile(`(?m)^(func (\([^)]*\) )?|var )` + name + `\b`).MatchString(code) {
					t.Errorf("%s has no %s", pkg, where)
				}
			}
		}
	}
}

func sourceOf(t *testing.T, pkg string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, pkg, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	for _, name := range files {
		code.WriteString(read(t, name))
	}
	return code.String()
}
