package replay

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/accesslog"
)

// suggestedFlags returns the flags, besides the limit, with which a replay and a proxy find the
// same keys and costs. Flags with their default are left out.
func suggestedFlags(o *Options, s accesslog.Schema) (replay, proxy string) {
	var b strings.Builder
	add := func(flag, value, byDefault string) {
		if value != byDefault {
			b.WriteString(" --" + flag + " " + shellWord(value))
		}
	}
	var trusted []string
	for _, network := range o.Trusted {
		trusted = append(trusted, network.String())
	}
	add("trusted-proxies", strings.Join(trusted, ","), "")
	proxy = b.String()
	add("key", strings.Join(o.Keys, ","), "ip")
	add("ipv6-prefix", strconv.Itoa(o.IPv6Prefix), "64")
	add("cost", o.Cost.String(), "1")
	for _, name := range slices.Sorted(maps.Keys(s.Names)) {
		add("field", name+"="+s.Names[name], "")
	}
	add("format", s.LogFormat, "")
	return b.String(), proxy
}

// shellWord returns a text as a shell reads it: quoted, unless all of it is plain.
func shellWord(text string) string {
	const plain = "-_./:,=@+%"
	special := func(r rune) bool {
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
		return !letter && !strings.ContainsRune(plain, r)
	}
	if !strings.ContainsFunc(text, special) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
