package peers

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The verdicts of docs/peers.md that a check decides.
const (
	keeps   = "keeps"
	breaks  = "**breaks**"
	noClaim = "no claim"
)

// doesNotApply matches any other verdict: the reason why a property does not apply.
var doesNotApply = regexp.MustCompile(`^\*[a-z ]+\*$`)

// traceOnly is a cell that only a trace checks, because the limiter reads its clock itself.
var traceOnly = cell{"go-chi/httprate", "C1 late"}

func TestTableInDocument(t *testing.T) {
	doc := readDocument(t)
	if got, want := len(doc.verdicts), len(subjects)*len(properties); got != want {
		t.Errorf("the table has %d cells, want %d", got, want)
	}
	for _, s := range subjects {
		for _, p := range properties {
			t.Run(s.name+"/"+p.name, func(t *testing.T) {
				c := cell{s.name, p.name}
				switch verdict := doc.verdicts[c]; verdict {
				case keeps, breaks, noClaim:
					if c == traceOnly {
						return
					}
					inBubble(t, func(b *bubble) {
						if failure := p.check(b, s); (failure == "") != (verdict == keeps) {
							t.Errorf("the document says %q; the check found %q", verdict, failure)
						}
					})
				default:
					if !doesNotApply.MatchString(verdict) {
						t.Errorf("%q is not a verdict", verdict)
					}
				}
			})
		}
	}
}

func TestTracesInDocument(t *testing.T) {
	if strconv.IntSize < 64 {
		t.Skip("the traces have costs of 64 bits")
	}
	doc := readDocument(t)
	for c := range doc.traces {
		if doc.verdicts[c] != breaks {
			t.Errorf("%v has a trace; the table says %q", c, doc.verdicts[c])
		}
	}
	for _, s := range subjects {
		for _, p := range properties {
			c := cell{s.name, p.name}
			if doc.verdicts[c] != breaks {
				continue
			}
			t.Run(s.name+"/"+p.name, func(t *testing.T) {
				tr, ok := doc.traces[c]
				if !ok {
					t.Fatal("the document has no trace")
				}
				inBubble(t, func(b *bubble) { tr.play(b, s) })
			})
		}
	}
}

// play fails unless the outcomes are as written, and exceed the bound of the last key.
func (tr trace) play(b *bubble, s subject) {
	d, bucket, over := s.new(b, tr.limit, 10), newIdeal(tr.limit), 0.0
	key := tr.calls[len(tr.calls)-1].key
	var play func(calls []call)
	play = func(calls []call) {
		for _, c := range calls {
			b.set(c.reading)
			var got outcome
			if c.during == nil {
				got = d.take(c.key, c.n)
			} else {
				got = d.takeOvertaken(c.key, c.n, func() { play(c.during) })
			}
			if got != c.want {
				b.Errorf("at %v: a cost of %d %s, want %s", c.reading, c.n, got, c.want)
			}
			if got == granted && c.n > 0 && c.key == key {
				over = max(over, bucket.take(c.reading, c.n))
			}
		}
	}
	play(tr.calls)
	if over < quantum {
		b.Errorf("the grants stay within the bound by %v", -over)
	}
}

func TestVersionsInDocument(t *testing.T) {
	doc, errDoc := os.ReadFile("../../docs/peers.md")
	mod, errMod := os.ReadFile("go.mod")
	if errDoc != nil || errMod != nil {
		t.Fatal(errDoc, errMod)
	}
	versions := regexp.MustCompile(`[\w./-]+ v\d+\.\d+\.\d+`).FindAllString(string(doc), -1)
	if len(versions) == 0 {
		t.Error("the document has no versions")
	}
	for _, v := range versions {
		if !strings.Contains(string(mod), "\t"+v+"\n") {
			t.Errorf("%s is not in go.mod", v)
		}
	}
}
