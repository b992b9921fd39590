package accesslog

import (
	"errors"
	"strings"
	"testing"
)

// lineTest is a line and its request.
type lineTest struct {
	name, line string
	want       request
}

// checkLines checks that each line is detected as a request in the format.
func checkLines(t *testing.T, want Format, tests []lineTest) {
	t.Helper()
	for _, tt := range tests {
		if got, format := one(t, tt.line); got != tt.want || format != want {
			t.Errorf("%s: got %+v (%s), want %+v (%s)", tt.name, got, format, tt.want, want)
		}
	}
}

// malformedTest is a line and its error.
type malformedTest struct {
	line string
	want error
}

// checkMalformed checks that each line is an error after a valid one, which decides the format.
func checkMalformed(t *testing.T, valid string, tests []malformedTest) {
	t.Helper()
	for _, tt := range tests {
		got, bad, _ := read(t, strings.NewReader(valid+"\n"+tt.line), Schema{})
		if len(got) != 1 || len(bad) != 1 || !errors.Is(bad[0], tt.want) {
			t.Errorf("%s: got %v, malformed %v; want %v", tt.line, got, bad, tt.want)
		}
	}
}
