package policy

import (
	"strings"
	"testing"
)

func TestByteOrderMarkIsSkipped(t *testing.T) {
	const mark = "\ufeff"
	mustParse(t, mark+jsonRules("", jsonRule("r", "[]", 1, "")))
	_, err := Parse([]byte(mark + mark + jsonRules("", jsonRule("r", "[]", 1, ""))))
	if err == nil {
		t.Error("two of them are accepted")
	}
}

func TestMalformedJSON(t *testing.T) {
	for policy, want := range map[string]string{
		"":                                "line 1: unexpected end of JSON input",
		"{":                               "line 1: unexpected end of JSON input",
		"[]":                              "must be an object (got an array)",
		"{}\n{}":                          "line 2: invalid character '{' after top-level value",
		"{\n}\n garbage":                  "line 3: invalid character 'g'",
		"{}}":                             "line 1: invalid character '}'",
		"{\"a\": 1,}":                     "line 1: invalid character '}'",
		"{\"a\":\n\n01}":                  "line 3: invalid character '1'",
		"{\n\n\"name\" 1}":                "line 3: invalid character '1'",
		"{\"name\": \"\xff\"}":            "not valid UTF-8",
		strings.Repeat(`{"a":`, 1_000_00): "line 1: invalid character '{' exceeded max depth",
	} {
		_, err := Parse([]byte(policy))
		if err == nil || !strings.HasPrefix(err.Error(), "httplimit: policy: "+want) {
			t.Errorf("%.20q: %v, want %s", policy, err, want)
		}
	}
}
