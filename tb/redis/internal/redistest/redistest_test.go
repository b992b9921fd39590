package redistest

import "testing"

func TestStart(t *testing.T) {
	first, second := Start(t), Start(t, "--maxmemory", "3mb")
	if first.Addr == second.Addr {
		t.Fatalf("both servers are at %s", first.Addr)
	}
	c := second.Client(t)
	got, err := c.Do(t.Context(), c.B().ConfigGet().Parameter("maxmemory").Build()).AsStrMap()
	if err != nil || got["maxmemory"] != "3145728" {
		t.Errorf("maxmemory is %v, %v", got, err)
	}
}
