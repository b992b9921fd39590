package replay

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/seed-181794aa/ratelimit/cmd/internal/accesslog"
)

// dns has the names of addresses and the addresses of names.
type dns map[string][]string

func (d dns) LookupAddr(ctx context.Context, address string) ([]string, error) {
	return d.LookupHost(ctx, address)
}

func (d dns) LookupHost(ctx context.Context, name string) ([]string, error) {
	if found := d[name]; found != nil && ctx.Err() == nil {
		return found, nil
	}
	return nil, errors.New("no such host")
}

// A name is shown if it leads back to the address of the client.
func TestTheNamesOfRefusedClients(t *testing.T) {
	names := dns{
		"192.0.2.1": {"other.example.", "crawler.example."}, "crawler.example.": {"192.0.2.1"},
		"other.example.": {"192.0.2.9"}, "192.0.2.2": {"crawler.example."},
	}
	var log string
	for _, client := range []string{"192.0.2.1", "192.0.2.2", "192.0.2.3"} {
		log += strings.Repeat(line(client, 1, 1), 3)
	}
	for _, o := range []Options{options(t, "1", 1), suggestOptions(t, "1%", "")} {
		o.Keys = []string{"path", "ip"}
		res := replay(t, o, input("a.log", log))
		rep := res.Report
		if s := rep.Suggestion; s != nil {
			s.Limit.Burst = 1
			s.Limit.addRefused(s.found, &res.replayer.habits)
			s.Check = &Check{Top: []TopKey{{Key: Key{"/p", "192.0.2.1"}}}}
		}
		rep.addNames(t.Context(), names)
		text := rendered(t, &rep)
		if !strings.Contains(text, "/p 192.0.2.1  crawler.example\n") ||
			!strings.Contains(text, "/p 192.0.2.2\n") || !strings.Contains(text, "/p 192.0.2.3\n") {
			t.Errorf("the first client alone has a name; got\n%s", text)
		}
		if s := rep.Suggestion; s != nil && s.Check.Top[0].Name != "crawler.example" {
			t.Errorf("the name in the check is %q", s.Check.Top[0].Name)
		}
	}
}

// A replay that follows a log ends with an interrupt, and its last report has the names. Under a
// policy, clients have names in the keys that have their addresses.
func TestTheNamesAfterAnInterrupt(t *testing.T) {
	names := dns{"192.0.2.1": {"crawler.example."}, "crawler.example.": {"192.0.2.1"}}
	const client = `{"name": "r", "limit_keys": ["ip:address"%s], "on_missing": "shared",
		"algorithm_config": {"tokens_per_second": 1, "burst": 1}}`
	all := map[string]Options{"192.0.2.1": options(t, "1", 1)}
	for want, more := range map[string]string{
		"ip:address=192.0.2.1": "", "ip:address=192.0.2.1 header:x=": `, "header:x"`,
	} {
		o, err := policyOptions(t, fmt.Sprintf(client, more))
		if err != nil {
			t.Fatal(err)
		}
		all[want] = o
	}
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	for key, o := range all {
		res, _ := Run(t.Context(), o, accesslog.Schema{}, []Input{
			input("a.log", strings.Repeat(line("192.0.2.1", 1, 1), 3)),
		})
		res.Report.addNames(interrupted, names)
		text := rendered(t, &res.Report)
		if !strings.Contains(text, key+"  crawler.example") {
			t.Errorf("no name behind %s in\n%s", key, text)
		}
	}
}

// A client cannot take the name of another one by a value that looks like its address.
func TestTheNameOfAnotherClient(t *testing.T) {
	names := dns{"192.0.2.1": {"crawler.example."}, "crawler.example.": {"192.0.2.1"}}
	o, err := policyOptions(t, `{"name": "r", "limit_keys": ["query:x", "ip:address"],
		"algorithm_config": {"tokens_per_second": 1, "burst": 1}}`)
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{"ip:address=192.0.2.1", "%20ip:address=192.0.2.1%20"} {
		log := strings.ReplaceAll(line("192.0.2.2", 1, 1)+line("192.0.2.1", 1, 1), "/p", "/p?x="+value)
		res, err := Run(t.Context(), o, accesslog.Schema{}, []Input{input("a.log", log+log)})
		if err != nil {
			t.Fatal(err)
		}
		res.Report.addNames(t.Context(), names)
		for _, k := range res.Report.Policy.Rules[0].Top {
			if isCrawler := strings.HasSuffix(k.Key, " ip:address=192.0.2.1"); isCrawler != (k.Name != "") {
				t.Errorf("the name of %s is %q", k.Key, k.Name)
			}
		}
	}
}
