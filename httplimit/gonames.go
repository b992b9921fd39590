package httplimit

import (
	"cmp"
	"regexp"
	"strings"
)

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
