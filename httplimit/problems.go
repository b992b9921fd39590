package httplimit

import (
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

const (
	maxProblems      = 100
	maxProblemLength = 1 << 10
)

// problems collects everything that is wrong with a policy. Each problem is the path of a field,
// and what the field must be. Problems beyond maxProblems are only counted, because a document can
// have as many as it has bytes.
type problems struct {
	list  []error
	count int
}

func (p *problems) add(path, format string, args ...any) {
	if p.count++; p.count <= maxProblems {
		p.list = append(p.list, errors.New(shorten(join(path, fmt.Sprintf(format, args...)))))
	}
}

// addAll adds the problems of another collection.
func (p *problems) addAll(other problems) {
	p.list = append(p.list, other.list[:min(len(other.list), maxProblems-len(p.list))]...)
	p.count += other.count
}

// err joins the problems. It is nil if there are none.
func (p *problems) err() error {
	if more := p.count - len(p.list); more > 0 {
		return errors.Join(append(p.list[:len(p.list):len(p.list)], MoreErrors(more))...)
	}
	return errors.Join(p.list...)
}

// MoreErrors is the last of the joined errors of a policy that has more than 100. It is the number
// of the other errors.
type MoreErrors int

func (n MoreErrors) Error() string { return fmt.Sprintf("and %d more", int(n)) }

// shorten cuts a text that echoes too much of a document.
func shorten(text string) string {
	if len(text) <= maxProblemLength {
		return text
	}
	n := maxProblemLength
	for !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "…"
}

func join(path, text string) string {
	if path == "" {
		return text
	}
	return path + " " + text
}

func field(path, name string) string {
	switch {
	case !partName.MatchString(name):
		return path + "[" + strconv.Quote(name) + "]"
	case path == "":
		return name
	}
	return path + "." + name
}

func index(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }
