// Package policy is the policies of package httplimit as data: the types, the document in JSON, and
// what is wrong with one. It knows neither requests nor buckets. A program that reads, writes or
// checks policies imports it, and httplimit puts a policy in force.
//
// A [Policy] has sets of rules. A [RuleSet] has a [Selector], which picks requests, and each [Rule]
// of it has a [tb.Limit] for each value of its keys:
//
//	{"rules": [
//	  {"name": "key", "limit_keys": ["header:x-api-key"], "on_missing": "reject",
//	   "algorithm_config": {"tokens_per_second": 10, "burst": 20}},
//	  {"name": "all", "limit_keys": [],
//	   "algorithm_config": {"tokens_per_second": 1000, "burst": 2000}}]}
//
// [Parse] reads such a document, which is one rule, rules, or a bundle of sets, and json.Marshal
// writes it. docs/policy.md describes each field. Parse returns all errors at once, each with the
// [Path] of its field. [Policy.Check] checks a policy that is made in Go, and [Policy.Warnings]
// says what is valid and lets clients past a limit. Some errors depend on the program, such as a
// key that it must add, and httplimit.ParsePolicyFor finds them.
package policy
