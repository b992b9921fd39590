package replay

import (
	"fmt"
	"strings"
	"testing"
)

// Beyond a number of clients the others are decided, but in no count of clients, and the first line
// says so.
func TestMoreClientsThanAreCounted(t *testing.T) {
	var log strings.Builder
	for client := range leastClients + 2 {
		for range 3 {
			log.WriteString(line(fmt.Sprintf("10.%d.%d.%d", client>>16, client>>8&255, client&255),
				client/100, 1))
		}
	}
	for _, tt := range []struct {
		maxKeys int
		keys    uint64
		doubt   string
	}{
		{1000, leastClients, "CAUTION: There are more than 131,072 clients, and the ones "},
		{leastClients + 2, leastClients + 2, ""},
	} {
		o := options(t, "1", 2)
		o.MaxKeys = tt.maxKeys
		rep := replay(t, o, input("a.log", log.String()))
		text := rendered(t, rep)
		if rep.Keys != tt.keys || rep.Limit.KeysRefused != tt.keys || rep.KeysExact != (tt.doubt == "") ||
			rep.Limit.Refused != leastClients+2 || !strings.HasPrefix(text, tt.doubt) ||
			(rep.checkAnswer() == nil) != (tt.doubt == "") {
			t.Errorf("--max-keys %d: %d keys, %+v, %q", tt.maxKeys, rep.Keys, rep.Limit, rep.Doubts)
		}
	}
}
