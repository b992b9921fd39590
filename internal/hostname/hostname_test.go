package hostname

import "testing"

func TestBare(t *testing.T) {
	for host, want := range map[string]string{
		"": "", ":80": "", "h": "h", "H.Example": "h.example", "h:80": "h", "h.:80": "h", "h:80:90": "h",
		"127.0.0.1:80": "127.0.0.1", "[0:0::1]:80": "[::1]", "[::FFFF]": "[::ffff]", "[h]:80": "[h]",
	} {
		if got := Bare(host); got != want {
			t.Errorf("%q: %q, want %q", host, got, want)
		}
	}
}
