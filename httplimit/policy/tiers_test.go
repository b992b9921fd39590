package policy

import (
	"errors"
	"strings"
	"testing"

	"github.com/seed-181794aa/ratelimit/tb"
)

func TestInvalidTiers(t *testing.T) {
	const limit = `"tokens_per_second": 1, "burst": 10, `
	for tiers, want := range map[string]string{
		`{}`:                               ".by is missing\n.limits is missing",
		`{"by": "header:p", "limits": {}}`: ".limits must have 1 to 65535 tiers (got 0)",
		`{"by": "ip:address", "limits": {"a": {"rps": 1, "burst": 1}}}`: ".by must not be ip:address",
		`{"by": "header:p", "limits": {"a": {"rps": 2, "burst": 1}}}`: ".limits.a.burst must be >= " +
			"tokens_per_second (got 1, want >= 2)",
		`{"by": "header:p", "limits": {"a": {"rps": 2, "bust": 1}}}`: ".limits.a.burst is missing\n" +
			".limits.a.bust is an unknown field",
		`{"by": "header:p", "limits": {"a": 1}}`: ".limits.a must be an object (got a number)",
		`{"by": "header:", "limits": {"a": {"rps": 1, "burst": 1}}}`: ".by must be header:<name>, " +
			`with a name of A-Z a-z 0-9 _ - (got "header:")`,
		`{"by": "header:p", "limits": {"": {"rps": 1, "burst": 1}}}`: `.limits must not have the ` +
			`name "", because an empty value counts as missing`,
	} {
		_, err := Parse([]byte(oneRule(`["header:k"]`, limit+`"tiers": `+tiers)))
		want = "\n" + want
		want = "httplimit: policy:" + strings.ReplaceAll(want, "\n.", "\nalgorithm_config.tiers.")
		if err == nil || err.Error() != want {
			t.Errorf("%s:\n%v, want\n%s", tiers, err, want)
		}
	}
	_, err := Parse([]byte(oneRule(`["ip:address/64,/48"]`,
		limit+`"tiers": {"by": "header:p", "limits": {"a": {"rps": 1, "burst": 1}}}`)))
	if err == nil || !strings.Contains(err.Error(), "tiers have no meaning for a key with parent") {
		t.Error(err)
	}
	r := Rule{Name: "r", Limit: tb.Limit{Capacity: 1, Tokens: 1, Per: 1}}
	r.Tiers = Tiers{By: "header:p", Limits: map[string]tb.Limit{}}
	for i := range maxTiers {
		r.Tiers.Limits[sprint(i)] = r.Limit
	}
	if err := errors.Join(Rules(r).Check()...); err != nil {
		t.Error(err)
	}
	r.Tiers.Limits["more"] = r.Limit
	err = errors.Join(Rules(r).Check()...)
	if err == nil || !strings.Contains(err.Error(), "must have 1 to 65535 tiers (got 65536)") {
		t.Error(err)
	}
}
