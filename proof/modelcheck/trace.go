package modelcheck

import (
	"fmt"
	"strconv"
	"strings"
)

// Failure is a schedule that fails.
type Failure struct {
	Message string
	Trace   string // its steps, one on each line
}

// formatTrace returns the text of the trace: one step on each line.
func (w *world) formatTrace() string {
	if !w.tracing {
		return ""
	}
	var b strings.Builder
	last := -1
	for _, s := range w.trace {
		thread := "  "
		if s.Thread != last {
			thread = fmt.Sprintf("T%d", s.Thread+1)
		}
		last = s.Thread
		if s.text != "" {
			fmt.Fprintf(&b, "%s   returns  %s\n", thread, s.text)
			continue
		}
		fmt.Fprintf(&b, "%s   %-16s %-12s %s\n", thread, s.Op, w.label(s.name), w.effect(s))
	}
	return b.String()
}

func (w *world) label(name uint64) string {
	if l, ok := w.labels[name]; ok {
		return l
	}
	return "a variable"
}

func (w *world) effect(s Step) string {
	value := func(v uint64) string {
		if l, ok := w.labels[v]; ok && v != 0 {
			return l
		}
		if w.program.Format != nil {
			return w.program.Format(v)
		}
		return strconv.FormatUint(v, 10)
	}
	switch {
	case s.Op == Lock || s.Op == Unlock:
		return ""
	case s.Op == TryLock && s.Result == 0:
		return "fails"
	case s.Op == TryLock:
		return "succeeds"
	case s.Op == ComputeEnd && s.before == s.after:
		return "unchanged"
	case (s.Op == CompareAndSwap || s.Op == CompareAndSwapPointer) && s.Result == 0:
		return "fails: it is " + value(s.before)
	case s.Op.writes() && s.Op != ComputeBegin:
		return value(s.before) + " becomes " + value(s.after)
	}
	return value(s.Result)
}
