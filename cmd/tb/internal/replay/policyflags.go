package replay

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/policyfile"
	"github.com/seed-181794aa/ratelimit/httplimit"
)

// checkPolicyFlags returns an error if a flag has no meaning with --policy.
func (c *Command) checkPolicyFlags(o *Options) error {
	switch {
	case c.Rate != Rate{} || c.Burst != 0 || len(o.Rates)+len(o.Bursts) > 0 || c.Suggest.isSet():
		return errors.New("want either --policy, or --rate, --burst, --sweep or --suggest, and not both")
	case !slices.Equal(o.Keys, []string{"ip"}) || c.Cost.String() != "1":
		return errors.New("want either --policy, or --key or --cost, and not both")
	case c.wantsPicture() || len(c.Algorithm) > 0:
		return errors.New("want either --policy, or --svg, --html or --algorithm, and not both")
	}
	return nil
}

// readPolicy reads the policy if one is named, and prints its warnings.
func (c *Command) readPolicy(o *Options, stderr io.Writer) error {
	if c.Policy == "" {
		return nil
	}
	data, err := os.ReadFile(c.Policy)
	if err != nil {
		return err
	}
	if o.Policy, err = policyfile.Parse(data); err != nil {
		return fmt.Errorf("%s is not accepted:\n%s", c.Policy,
			strings.Join(policyfile.Problems(err), "\n"))
	}
	if err := checkReplayable(o.Policy); err != nil {
		return fmt.Errorf("%s: %w", c.Policy, err)
	}
	for _, text := range o.Policy.Warnings() {
		fmt.Fprintf(stderr, "tb: %s: warning: %s\n", c.Policy, text)
	}
	return nil
}

// checkReplayable returns an error that names the first rule that no log shows the effect of.
func checkReplayable(p *httplimit.Policy) error {
	for _, s := range p.Sets {
		for _, r := range rulesOf(&s) {
			var why string
			switch {
			case strings.HasPrefix(r.Cost.Source, "response:"):
				why = "its cost is known after the response"
			case r.Adaptive != httplimit.Adaptive{}:
				why = "its rate follows what the upstream answers"
			case r.OnLimit == httplimit.Delay && !r.Shadow && !s.Shadow:
				why = "it delays requests, which would have ended later"
			default:
				continue
			}
			return fmt.Errorf("rule %q cannot be replayed: %s", r.Name, why)
		}
	}
	return nil
}
