package replay

import (
	"fmt"
	"strings"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/internal/accesslog"
	"github.com/seed-181794aa/ratelimit/internal/compositekey"
)

// shownFirst is how many of the first requests a report has.
const shownFirst = 5

// FirstRequest is one of the first requests, as it was read.
type FirstRequest struct {
	Time time.Time `json:"time"`
	Key  Key       `json:"key"`
	// Request has the method, the host, the path and the query, as far as the log has them.
	Request string `json:"request"`
}

// firstRequest returns a request as a user can check it. Under a policy its key is the client.
func (r *replayer) firstRequest(rec *accesslog.Record) FirstRequest {
	var key string
	if r.policy == nil {
		key = string(r.keyer.peek(rec))
	} else {
		key = string(compositekey.Append(nil, r.keyer.client(rec)))
	}
	request := strings.TrimSpace(string(rec.Method) + " " + string(rec.Host) + string(rec.Path))
	if len(rec.Query) > 0 {
		request += "?" + string(rec.Query)
	}
	return FirstRequest{time.Unix(0, rec.Time).UTC(), compositekey.Parts(key), request}
}

// writeFirst writes the first requests.
func (rep *Report) writeFirst(b *strings.Builder) {
	const widest = 60
	b.WriteString("\nThe first lines, as they are read:\n\n")
	table := leftColumns(b)
	fmt.Fprintf(table, "  time\t%s\trequest\n", strings.Join(rep.KeyParts, " "))
	for _, r := range rep.FirstRequests {
		fmt.Fprintf(table, "  %s\t%s\t%s\n", dateTime(r.Time), keyText(r.Key),
			shorten(keyText([]string{r.Request}), widest))
	}
	table.Flush()
	b.WriteString("\nIf that is not so: --key, --trusted-proxies, --field and --format say how" +
		" to read them.\n")
}
