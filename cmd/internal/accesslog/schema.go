package accesslog

import (
	"fmt"
	"slices"
	"strings"
)

// Schema describes what to read of a log.
type Schema struct {
	// Names maps "time", "ip" (the peer), "forwarded", "user", "host", "uri", "size" and "agent" to
	// the field that holds it, in the formats that name their fields: JSON, logfmt, W3C and
	// LogFormat. Without a name, the usual fields of the format hold it. In JSON, a path names
	// a field in a nested object: "request.headers.X-Api-Key". The first element of an array
	// counts, but an array of addresses is a list.
	Names map[string]string
	// Extra are the fields for Record.Fields.
	Extra []string
	// Forwarded asks for Record.Forwarded of all lines, in all formats.
	Forwarded bool
	// LogFormat is the log_format of nginx that wrote the log. If it is empty, the format
	// is detected.
	LogFormat string
}

// Validate returns an error if Names has an unknown name or an empty field, or if LogFormat
// has a mistake.
func (s Schema) Validate() error {
	for field, name := range s.Names {
		if !slices.Contains(fieldNames[:], field) || name == "" {
			return fmt.Errorf("%s=%s: want NAME=FIELD with NAME one of %s",
				field, name, strings.Join(fieldNames[:], ", "))
		}
	}
	_, err := newDetector(s)
	return err
}
