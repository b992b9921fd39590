package httplimit

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
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
	inGo  bool // the policy was made in Go, so its fields have Go's names
}

func (p *problems) add(path, format string, args ...any) {
	path = p.place(path)
	if p.inGo {
		format = jsonName.ReplaceAllStringFunc(format, goName)
	}
	if p.count++; p.count <= maxProblems {
		p.list = append(p.list, errors.New(shorten(join(path, fmt.Sprintf(format, args...)))))
	}
}

// place returns a path as the author of the policy reads it.
func (p *problems) place(path string) string {
	if p.inGo {
		return goPath(path)
	}
	return path
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

// goNames are the fields of Policy by their names in JSON.
var goNames = map[string]string{
	"sets": "Sets", "id": "Name", "selector": "Selector", "hosts": "Hosts", "methods": "Methods",
	"pathExact": "PathExact", "pathPrefix": "PathPrefix", "evaluation": "Evaluation",
	"rules": "Rules", fallbackName: "Fallback", "jwt": "UnverifiedJWT", "max_waiting": "MaxWaiting",

	"name": "Name", "limit_keys": "Keys", "match": "Match", "on_missing": "OnMissing",
	"on_limit": "OnLimit", "max_delay": "MaxDelay", "limit": "Limit", "tokens_per_second": "Limit",
	"parent_factor": "ParentFactor", "tiers": "Tiers", "by": "By", "limits": "Limits",
	"adaptive": "Adaptive", "min": "Min", "max": "Max", "target_p99": "TargetP99",

	"cost_source": "Cost.Source", "fixed_cost": "Cost.Fixed", "default_cost": "Cost.Default",
	"min_cost": "Cost.Min", "max_cost": "Cost.Max", "hide_cost_header": "Cost.HideHeader",
}

// jsonName matches the names in the texts of problems that are not also words.
var jsonName = regexp.MustCompile(`[a-z]+(_[a-z0-9]+)+`)

func goName(name string) string { return cmp.Or(goNames[name], name) }

// step is a part of a path: a field, or an index or a quoted name in brackets.
var step = regexp.MustCompile(`[^.\[]+|\[(\d+|"(\\.|[^"\\])*")\]`)

// goPath returns a path with Go's names. The limit and the cost of a rule are not in a field
// algorithm_config there.
func goPath(path string) string {
	var b strings.Builder
	ofMap := false // a key of a map comes next
	for _, name := range step.FindAllString(path, -1) {
		switch {
		case ofMap && name[0] != '[':
			name = `["` + name + `"]`
		case !ofMap && name == "algorithm_config":
			continue
		case !ofMap:
			name = goName(name)
		}
		ofMap = !ofMap && (name == "Match" || name == "Limits")
		if b.Len() > 0 && name[0] != '[' {
			b.WriteByte('.')
		}
		b.WriteString(name)
	}
	return b.String()
}
