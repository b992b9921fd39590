package accesslog

import (
	"bytes"

	"github.com/go-logfmt/logfmt"
)

// logfmtParser parses lines of logfmt (https://brandur.org/logfmt), pairs with spaces between:
//
//	ts=2015-05-17T10:05:03Z remote_addr=192.0.2.7 method=GET path="/a b" bytes=17
//
// A value with spaces, quotes or equals signs is in quotes. A key may have no value. The keys are
// the fields of JSON logs.
type logfmtParser struct{ fields }

var (
	errPair  = &lack{0, "want pairs of key=value"}
	errValue = &lack{4, "want pairs of key=value, with quotes around a value that has a space," +
		" a quote or an equals sign"}
)

// parse refuses a line that does not begin with a pair: any text is a list of keys.
func (p *logfmtParser) parse(line []byte, rec *Record) error {
	if end := bytes.IndexAny(line, "= "); end <= 0 || line[end] != '=' {
		return errPair
	}
	clear(p.values)
	pairs := logfmt.NewDecoderSize(bytes.NewReader(line), len(line)+1)
	pairs.ScanRecord()
	for pairs.ScanKeyval() {
		p.set(p.slots[string(pairs.Key())], pairs.Value())
	}
	if pairs.Err() != nil {
		return errValue
	}
	return p.fillRequest(rec)
}
