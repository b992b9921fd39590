package config

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v2"
)

// document is the content of a file.
type document struct {
	Domain      string
	Descriptors []descriptor
}

type descriptor struct {
	Key, Value     string
	RateLimit      *rateLimit `yaml:"rate_limit"`
	Descriptors    []descriptor
	ShadowMode     bool `yaml:"shadow_mode"`
	QuotaMode      bool `yaml:"quota_mode"`
	DetailedMetric bool `yaml:"detailed_metric"`
	ValueToMetric  bool `yaml:"value_to_metric"`
	ShareThreshold bool `yaml:"share_threshold"`
	Metadata       map[string]any

	line line
}

type rateLimit struct {
	RequestsPerUnit *float64 `yaml:"requests_per_unit"`
	Unit            string
	Unlimited       bool
	Name            string
	Replaces        []replaces

	// These fields are ours.
	Burst *float64
	Cost  *float64
	Debt  *bool

	line line
}

type replaces struct{ Name string }

// UnmarshalYAML keeps the line.
func (d *descriptor) UnmarshalYAML(unmarshal func(any) error) error {
	type mapping descriptor // without this method
	d.line = lineOf(unmarshal)
	return unmarshal((*mapping)(d))
}

// UnmarshalYAML keeps the line.
func (l *rateLimit) UnmarshalYAML(unmarshal func(any) error) error {
	type mapping rateLimit
	l.line = lineOf(unmarshal)
	return unmarshal((*mapping)(l))
}

// line is the line of a mapping: of its first field if each is on a line of its own.
type line int

// lineOf returns the line of a mapping. The library says it only in an error.
func lineOf(unmarshal func(any) error) (l line) {
	var none chan line // has no value in YAML
	for _, p := range problems(unmarshal(&none)) {
		l, _ = cutLine(p)
	}
	return l
}

// asJSON returns a value of the library in which the keys of maps are text.
func asJSON(v any) any {
	switch v := v.(type) {
	case map[any]any:
		m := map[string]any{}
		for key, value := range v {
			m[fmt.Sprint(key)] = asJSON(value)
		}
		return m
	case map[string]any: // the outermost
		for key := range v {
			v[key] = asJSON(v[key])
		}
	case []any:
		for i := range v {
			v[i] = asJSON(v[i])
		}
	}
	return v
}

// parse reads a file as envoyproxy/ratelimit does, because the library is the same: only the first
// document counts, and of equal fields the last. It returns nil if there is an error.
func (c *compiler) parse(f File) *document {
	var d document
	before := len(c.errs)
	c.file = f.Name
	for _, p := range problems(yaml.Unmarshal([]byte(f.Text), &d)) {
		c.line, p = cutLine(p)
		c.fail("%s", goType.ReplaceAllString(p, " into $1"))
	}
	c.checkFields(f.Text)
	for _, at := range nextDocument.FindAllStringIndex(f.Text, -1) {
		if above := f.Text[:at[0]]; content.MatchString(above) {
			c.line = line(1 + strings.Count(above, "\n"))
			c.warn("this document has no effect: only the first of a file is read")
			break
		}
	}
	if len(c.errs) > before {
		return nil
	}
	return &d
}

// checkFields warns of the fields of a text that have no effect. Unknown ones are errors, unless
// they are in what is overridden.
func (c *compiler) checkFields(text string) {
	hasEqual, before := false, len(c.errs)
	for _, p := range problems(yaml.UnmarshalStrict([]byte(text), new(document))) {
		c.line, p = cutLine(p)
		unknown, equal := unknownField.FindStringSubmatch(p), equalField.FindStringSubmatch(p)
		switch {
		case equal != nil:
			c.warn("%s is here again, and overrides what is above", equal[1])
			hasEqual = true
		case unknown != nil && slices.Contains(knownFields, unknown[1]):
			c.warn("%s has no effect here", unknown[1])
		case unknown != nil:
			c.fail("field %s is unknown", unknown[1])
		}
	}
	if hasEqual { // the library has looked into the first of them
		var last any
		_ = yaml.Unmarshal([]byte(text), &last) // an error was found before
		without, _ := yaml.Marshal(last)
		again := compiler{file: c.file + " without what is overridden"}
		again.checkFields(string(without))
		c.errs = append(c.errs[:before], again.errs...)
	}
}

// knownFields are those of envoyproxy/ratelimit, which it ignores in a wrong place.
var knownFields = strings.Fields("domain descriptors key value rate_limit shadow_mode quota_mode" +
	" detailed_metric value_to_metric share_threshold metadata requests_per_unit unit unlimited name" +
	" replaces")

// The beginning of a document with its first text, and a line that is not before the first one.
var (
	nextDocument = regexp.MustCompile(`(?m)^(---|\.\.\.)(\s+#.*$|\s)*\s[^\s#]`)
	content      = regexp.MustCompile(`(?m)^\s*[^\s#%]`)
)

// The texts of the library.
var (
	unknownField = regexp.MustCompile(`(?s)^field (.+) not found in type `)
	equalField   = regexp.MustCompile(`(?s)^(?:field|key) (.+) already set in `)
	goType       = regexp.MustCompile(` into \*?(?:config\.)?(\w+)`)
	libraryLine  = regexp.MustCompile(`^(?:yaml: )?(?:line (\d+): )?`)
)

// problems returns the texts of an error of the library.
func problems(err error) []string {
	if e := (*yaml.TypeError)(nil); errors.As(err, &e) {
		return e.Errors
	}
	if err != nil {
		return []string{err.Error()}
	}
	return nil
}

// cutLine returns the line of a text of the library, and the rest of the text.
func cutLine(text string) (line, string) {
	at := libraryLine.FindStringSubmatch(text)
	n, _ := strconv.Atoi(at[1]) // 0 if there is none
	return line(n), text[len(at[0]):]
}
