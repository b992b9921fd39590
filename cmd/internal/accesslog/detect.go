package accesslog

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
)

type parser interface {
	// parse fills an empty record from a line. For a line that is not a request, it returns an error
	// that is or wraps a *lack. The error is errNoTime if nothing else is missing.
	parse(line []byte, rec *Record) error
}

// namedParser is a parser of a format. The one of Common parses Combined, too.
type namedParser struct {
	parser
	format Format
	// amongMessages reports that a program writes the lines among its messages, so that another line
	// is one of these and not malformed.
	amongMessages bool
}

type detector struct {
	parsers []namedParser
	json    *jsonParser // one of them, unless there is a LogFormat
	w3c     *w3cParser  // so, too
	extra   int         // the number of extra fields
	tried   string      // what the formats are

	chosen reading // has no parser before a valid line
}

type reading struct {
	namedParser
	envelope
}

func newDetector(s Schema) (detector, error) {
	d := detector{json: &jsonParser{fields: newFields(s, nil)}, extra: len(s.Extra)}
	d.w3c = &w3cParser{fields: newFields(s, nil)}
	if s.LogFormat != "" {
		p, err := newFormatParser(s.LogFormat, s)
		if err == nil {
			err = p.check(s.LogFormat)
		}
		d.parsers = []namedParser{{parser: p, format: LogFormat}}
		d.tried = "lines of the given format"
		return d, err
	}
	d.parsers = slices.Concat([]namedParser{
		{parser: &clfParser{}, format: Common},
		{parser: d.json, format: JSON},
		{parser: d.w3c, format: W3C},
	}, newPatternParsers(s.Extra), []namedParser{
		{parser: &logfmtParser{newFields(s, nil)}, format: Logfmt},
	})
	for _, p := range d.parsers {
		d.tried += string(p.format) + ", "
	}
	d.tried += "each perhaps in the lines of syslog, Docker or Kubernetes; --format reads others"
	return d, nil
}

var errTwoFormats = errors.New("fit its first lines, and find other requests in them: want" +
	" --format with the log_format of nginx that says which one")

var errNoEnvelope = &lack{0, "want the prefix or the JSON object that the first lines are in"}

// parse parses a line in the format of the log. If choose chose none, the first valid line does.
func (d *detector) parse(line []byte, rec *Record) error {
	if d.chosen.parser == nil {
		if err := d.choose(line); err != nil {
			return err
		}
	}
	message, time, ok := d.chosen.cut(line)
	if !ok {
		return errNoEnvelope
	}
	err := d.read(d.chosen.parser, message, time, rec)
	if err != nil && d.chosen.amongMessages {
		return ErrMessage
	}
	return err
}

// read parses a message with a parser. If the message has no time, it has the one of its envelope.
func (d *detector) read(p parser, message, time []byte, rec *Record) error {
	rec.reset(d.extra)
	err := p.parse(message, rec)
	if len(time) > 0 && (errors.Is(err, errNoTime) || errors.Is(err, errTimeless)) {
		if ns, ok := parseTime(time, isoLayouts...); ok {
			rec.Time, err = ns, nil
		}
	}
	return err
}

// choose chooses the reading of most of these lines. If no line is valid, the error says what the
// last one lacks in the nearest format. It is another error if two readings read as many lines and
// find other requests in them.
func (d *detector) choose(lines ...[]byte) (nearest error) {
	type ballot struct {
		reading
		lines    int
		requests []byte
	}
	var ballots []*ballot
	best := &ballot{}
	for _, line := range lines {
		most := -1
		for _, e := range envelopesOf(line, d.parsers[0].format == LogFormat) {
			message, time, ok := e.cut(line)
			if !ok {
				continue
			}
			for _, p := range d.parsers {
				var rec Record
				err := d.read(p.parser, message, time, &rec)
				if l := (*lack)(nil); errors.As(err, &l) && l.parts > most {
					most, nearest = l.parts, fmt.Errorf("nearest is %s: %w", p.format, err)
				}
				if err != nil {
					continue
				}
				if p.format == Common && rec.combined {
					p.format = Combined
				}
				i := slices.IndexFunc(ballots, func(b *ballot) bool {
					return b.parser == p.parser && b.name == e.name
				})
				if i < 0 {
					i = len(ballots)
					ballots = append(ballots, &ballot{reading: reading{p, e}})
				}
				b := ballots[i]
				b.lines++
				b.requests = fmt.Appendf(b.requests, "%d %q %q\n", rec.Time, rec.Peer, rec.Path)
				if b.lines > best.lines {
					best = b
				}
			}
		}
	}
	if best.lines == 0 {
		return nearest
	}
	for _, b := range ballots {
		if b.lines == best.lines && !bytes.Equal(b.requests, best.requests) {
			return fmt.Errorf("%s and %s %w", best.format, b.format, errTwoFormats)
		}
	}
	d.chosen = best.reading
	return nil
}
