package replay

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// dns has the names of addresses and the addresses of names.
type dns map[string][]string

func (d dns) LookupAddr(ctx context.Context, address string) ([]string, error) {
	return d.LookupHost(ctx, address)
}

func (d dns) LookupHost(_ context.Context, name string) ([]string, error) {
	if found := d[name]; found != nil {
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
