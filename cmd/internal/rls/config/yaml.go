package config

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// document is the content of a file.
type document struct {
	Domain      text
	Descriptors []descriptor
}

type descriptor struct {
	Key, Value     text
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

// UnmarshalYAML keeps the line. In contrast to the newer interface of the library, this one keeps
// the decoder, which refuses unknown fields.
func (d *descriptor) UnmarshalYAML(unmarshal func(any) error) error {
	type mapping descriptor // without this method; its name is in errors
	if err := unmarshal(&d.line); err != nil {
		return err
	}
	return unmarshal((*mapping)(d))
}

// line is the line of any value.
type line int

// UnmarshalYAML implements yaml.Unmarshaler.
func (l *line) UnmarshalYAML(n *yaml.Node) error {
	*l = line(n.Line)
	return nil
}

type rateLimit struct {
	RequestsPerUnit *whole `yaml:"requests_per_unit"`
	Unit            text
	Unlimited       bool
	Name            text
	Replaces        []replaces

	// These fields are ours.
	Burst *whole
	Cost  *float64
	Debt  *bool
}

type replaces struct{ Name text }

// text is a scalar and its line.
type text struct {
	value string
	line  line
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (t *text) UnmarshalYAML(n *yaml.Node) error {
	t.line = line(n.Line)
	err := n.Decode(&t.value)
	if err == nil && !utf8.ValidString(t.value) { // of the type !!binary
		err = problem(n, "want text in UTF-8")
	}
	return err
}

// whole is a whole number. The library would cut off the fraction of another one.
type whole uint32

// UnmarshalYAML implements yaml.Unmarshaler.
func (w *whole) UnmarshalYAML(n *yaml.Node) error {
	if n.ShortTag() == "!!float" {
		return problem(n, "want a whole number, such as 10")
	}
	return n.Decode((*uint32)(w))
}

// problem returns an error at the line of a node, as the library returns it.
func problem(n *yaml.Node, text string) error {
	return &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: %s", n.Line, text)}}
}

// parse reads a file, which must have one document with fields that are known.
func parse(f File) (*document, error) {
	var d document
	decoder := yaml.NewDecoder(strings.NewReader(f.Text))
	decoder.KnownFields(true)
	err := decoder.Decode(&d)
	if errors.Is(err, io.EOF) { // an empty file
		return &d, nil
	}
	if err == nil {
		if err = decoder.Decode(new(any)); errors.Is(err, io.EOF) {
			return &d, nil
		}
		if err == nil {
			err = errors.New("want one document, without a line ---")
		}
	}
	return nil, place(f.Name, err)
}

// The texts of the library that name a type of Go, or the library itself.
var (
	unknownField = regexp.MustCompile(`not found in type config\.\w+`)
	goType       = regexp.MustCompile(` into (\*?)(config\.)?(\w+)`)
	libraryLine  = regexp.MustCompile(`^(yaml: )?line (\d+): `)
)

// place returns an error of the library with the name of the file before each problem.
func place(name string, err error) error {
	problems := []string{err.Error()}
	if e := (*yaml.TypeError)(nil); errors.As(err, &e) {
		problems = e.Errors
	}
	var errs []error
	for _, p := range problems {
		p = unknownField.ReplaceAllString(p, "is unknown")
		p = goType.ReplaceAllString(p, " into $3")
		if at := libraryLine.FindStringSubmatch(p); at != nil {
			p = at[2] + ": " + p[len(at[0]):]
		} else {
			p = " " + strings.TrimPrefix(p, "yaml: ")
		}
		errs = append(errs, fmt.Errorf("%s:%s", name, p))
	}
	return errors.Join(errs...)
}
