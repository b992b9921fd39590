package tokenbucket

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// optionNames has the options of a Caddyfile that become fields of a policy with another name.
var optionNames = map[string]string{
	"id": "rule", "limit_keys": "key", "max_delay": "delay", "tokens_per_second": "rate",
	"hosts": "host", "methods": "method", "pathExact": "path", "pathPrefix": "path",
	"cost_source": "cost", "fixed_cost": "cost", "default_cost": "cost default",
	"min_cost": "cost min", "max_cost": "cost max", "status_costs": "cost",
	"Reason": "reason_field",
}

// inWords replaces words of a policy in JSON.
var inWords = strings.NewReplacer(
	"tokens_per_second", "the tokens of a second", "must be fixed,", "must be a number,",
	"have a parent with", "has a parent with", "cost_source", "cost", "max_cost", "cost max",
	`"ip:address"`, "{client_ip}", "on_limit delay", "delay",
)

// inRule matches the path of a field in a rule.
var inRule = regexp.MustCompile(`^policies\[(\d+)\]`)

// explain returns an error of httplimit in the words of the Caddyfile, with the line of each option
// that it is about.
func (p *parser) explain(err error) error {
	if err == nil {
		return nil
	}
	problems := []error{err}
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		problems = joined.Unwrap()
	}
	var errs []error
	for _, problem := range problems {
		path, text, _ := strings.Cut(problem.Error(), " ")
		block, title := p.options, ""
		if m := inRule.FindStringSubmatch(path); m != nil {
			i, _ := strconv.Atoi(m[1])
			block, title = p.rules[i], fmt.Sprintf("rule %q: ", p.policy.Sets[i].Name)
		}
		name := path[strings.LastIndexByte(path, '.')+1:]
		name, _, _ = strings.Cut(name, "[")
		name = strings.TrimSuffix(name, ":")
		name = cmp.Or(optionNames[name], name)
		for field, option := range map[string]string{"except[": "except", "status_costs.": "cost",
			"priority.": "priority"} {
			if strings.Contains(path, field) && name != option {
				name = option + " " + name
			}
		}
		option, _, _ := strings.Cut(name, " ")
		errs = append(errs, block.at(option).Errf("%s%s %s", title, name, inWords.Replace(text)))
	}
	return errors.Join(errs...)
}
