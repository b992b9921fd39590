// Package planted has bugs that were planted by hand where no operator of a mutation test reaches:
// two steps in the other order, a check that is left out, a stale pointer, a lost carry. The files
// in bugs list them. The tests of this package, the model checker and the tests of tb/redis require
// that each of them is found.
//
// A list has one bug after another:
//
//	bug: the seal is stored
//	file: tb/cas/spend.go
//	run: always
//	-			c.word.CompareAndSwap(word, word|sealBit)
//	+			c.word.Store(word | sealBit)
//
// The lines after - stand in the file exactly once, and the lines after + take their place. A bug
// with "run: always" is planted without -all, too. "maps: tiny" and "front: one pair" are for the
// model checker, which then explores the code with tiny maps, or with a front of one pair.
// "test: ./proof/load" means that these tests, too, fail on a build with the bug. Lines that begin
// with # are comments.
package planted

import (
	"embed"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"testing"
)

// Bug is an error in the code: New takes the place of Old, which occurs in the file exactly once.
type Bug struct {
	Name, File string
	Old, New   string // whole lines
	Always     bool   // planted also if not all bugs are
	TinyMaps   bool
	OnePair    bool
	Tests      []string // that find it: each is arguments of go test
}

var named = flag.String("bug", "", "plant only what has a name that this expression matches")

//go:embed bugs
var texts embed.FS

// Bugs returns the bugs of the lists whose names match a pattern.
func Bugs(pattern string) (all []Bug, err error) {
	names, err := fs.Glob(texts, "bugs/"+pattern+".txt")
	for _, name := range names {
		text, readErr := texts.ReadFile(name)
		bugs, parseErr := parse(name, string(text))
		all, err = append(all, bugs...), errors.Join(err, readErr, parseErr)
	}
	return all, err
}

func parse(list, text string) (bugs []Bug, err error) {
	number := 0
	for line := range strings.Lines(text) {
		number++
		name, isName := strings.CutPrefix(line, "bug: ")
		if isName {
			bugs = append(bugs, Bug{Name: strings.TrimSpace(name)})
			continue
		}
		if line == "\n" || line[0] == '#' {
			continue
		}
		if len(bugs) == 0 {
			return nil, fmt.Errorf("%s, line %d: want a bug before %q", list, number, line)
		}
		b := &bugs[len(bugs)-1]
		file, isFile := strings.CutPrefix(line, "file: ")
		test, isTest := strings.CutPrefix(line, "test: ")
		switch {
		case isFile:
			b.File = strings.TrimSpace(file)
		case isTest:
			b.Tests = append(b.Tests, strings.TrimSpace(test))
		case line == "run: always\n":
			b.Always = true
		case line == "maps: tiny\n":
			b.TinyMaps = true
		case line == "front: one pair\n":
			b.OnePair = true
		case line[0] == '-':
			b.Old += line[1:]
		case line[0] == '+':
			b.New += line[1:]
		default:
			return nil, fmt.Errorf("%s, bug %q, line %d: want a field, or a line after - or +, not %q",
				list, b.Name, number, line)
		}
	}
	return bugs, nil
}

// Chosen returns the bugs to plant: those that always are, or all, or those of the flag -bug.
func Chosen(bugs []Bug, all bool) (chosen []Bug) {
	expression := regexp.MustCompile(*named)
	for _, b := range bugs {
		if (all || *named != "" || b.Always) && expression.MatchString(b.Name) {
			chosen = append(chosen, b)
		}
	}
	return chosen
}

// In returns the text of the bug's file with the bug.
func (b Bug) In(text string) (string, error) {
	if n := strings.Count(text, b.Old); n != 1 || b.Old == b.New {
		return "", fmt.Errorf("bug %q: %s has these lines %d times, want once, and other lines in "+
			"their place:\n%s", b.Name, b.File, n, b.Old)
	}
	return strings.Replace(text, b.Old, b.New, 1), nil
}

// Find plants bugs, each in a subtest. find runs tests with a bug and returns the failure that has
// found it, or "".
func Find(t *testing.T, bugs []Bug, find func(*testing.T, Bug) string) {
	t.Helper()
	for _, b := range bugs {
		t.Run(b.Name, func(t *testing.T) {
			if failure := find(t, b); failure != "" {
				t.Log("found by ", failure)
			} else {
				t.Error("no test finds it")
			}
		})
	}
}
