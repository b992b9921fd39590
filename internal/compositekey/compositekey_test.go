package compositekey

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestPartsReturnsWhatWasAppended(t *testing.T) {
	for _, parts := range [][]string{
		nil,
		{""},
		{"", ""},
		{"a", "", "\x02b"},
		{strings.Repeat("x", 63), strings.Repeat("y", 64)},
		{strings.Repeat("z", 1<<14)},
	} {
		var fromStrings, fromBytes []byte
		for _, p := range parts {
			fromStrings, fromBytes = Append(fromStrings, p), Append(fromBytes, []byte(p))
		}
		if got := Parts(string(fromStrings)); !slices.Equal(got, parts) {
			t.Errorf("%q, want %q", got, parts)
		}
		if !slices.Equal(fromStrings, fromBytes) {
			t.Errorf("%q from strings, %q from bytes", fromStrings, fromBytes)
		}
	}
}

func TestDifferentPartsHaveDifferentKeys(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	seen := map[string]string{}
	for range 20_000 {
		var key, list []byte
		for range rnd.IntN(4) {
			part := make([]byte, rnd.IntN(4))
			for i := range part {
				part[i] = []byte{0, 1, 2, 3, 4, 5, 'a', 0xff}[rnd.IntN(8)]
			}
			kind := byte('p')
			if rnd.IntN(4) == 0 {
				kind = 'd'
				key = AppendDigest(key, part)
			} else {
				key = Append(key, part)
			}
			list = append(append(list, kind, byte(len(part))), part...)
		}
		if other, ok := seen[string(key)]; ok && other != string(list) {
			t.Fatalf("%q and %q have one key", list, other)
		}
		seen[string(key)] = string(list)
	}
	if len(seen) < 1000 {
		t.Fatalf("only %d different lists", len(seen))
	}
}
