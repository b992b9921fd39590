package hash

import "testing"

func TestMixIsTheFinalizerOfMurmurHash3(t *testing.T) {
	if got, want := Mix(1), uint64(0xb456bcfc34c2cb2c); got != want {
		t.Errorf("Mix(1) is %#x, want %#x", got, want)
	}
}

func TestPartsAreKeptApart(t *testing.T) {
	seen := map[uint64][]string{}
	for _, parts := range [][]string{{}, {""}, {"", ""}, {"ab"}, {"a", "b"}, {"", "ab"}, {"ab", ""}} {
		h := Empty
		for _, p := range parts {
			if h, g := Add(h, p), Add(h, []byte(p)); h != g {
				t.Errorf("%q: %#x as a string, %#x as bytes", p, h, g)
			}
			h = Add(h, p)
		}
		if other, ok := seen[h]; ok {
			t.Errorf("%q and %q have one hash", other, parts)
		}
		seen[h] = parts
	}
}
