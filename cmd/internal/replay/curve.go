package replay

import (
	"fmt"
	"slices"
)

// burstTable has what each burst refuses at the suggested rate, up to the one that refuses nothing.
func (rep *Report) burstTable() table {
	t := table{ID: "bursts", Of: "burst", Head: []string{"clients"}, Chart: true}
	l, s := rep.Limit, rep.Suggestion
	if l == nil || s == nil {
		return t
	}
	t.Title, t.Share = fmt.Sprintf("What each burst refuses at %s", l.Rate), 100*s.Share
	bursts := burstsTo(max(l.Burst, s.found.ForClients(l.index, 0)))
	suggested, is := slices.BinarySearch(bursts, l.Burst)
	if !is {
		bursts = slices.Insert(bursts, suggested, l.Burst)
	}
	clients, requests := s.found.Refusals(l.index, bursts)
	if requests != nil {
		t.Head = append(t.Head, "requests")
	}
	for i, burst := range bursts {
		cells := []string{withShare(clients[i], s.found.Matter())}
		if requests != nil {
			cells = append(cells, withShare(requests[i], s.found.Requests()))
		}
		t.add(grouped(burst), cells...)
	}
	t.Rows[suggested].More = "suggested"
	return t
}

// withShare writes a count with its share of all, by which the page draws it.
func withShare(n, all uint64) string {
	return fmt.Sprintf("%s (%.2f %%)", grouped(n), 100*share(n, all))
}

// burstsTo returns bursts from 1 to greatest, each at most a tenth or 1 above the one before: about
// 200 up to the greatest burst of all.
func burstsTo(greatest uint64) (bursts []uint64) {
	for b := uint64(1); b < greatest; b += max(1, b/10) {
		bursts = append(bursts, b)
	}
	return append(bursts, greatest)
}
