package replay

import (
	"fmt"
	"slices"
)

// curve has what each burst refuses at the suggested rate. The page draws a chart from it.
type curve struct {
	Rate     Rate
	Share    float64 // of --suggest, in percent
	Requests bool    // whether the refused requests are known
	Rows     []curveRow
}

type curveRow struct {
	Burst             cell
	Suggested         bool
	Clients, Requests cell // by their share in percent
}

// curve returns the refusals up to the burst that refuses nothing, or nil if no limit is suggested.
func (rep *Report) curve() *curve {
	l, s := rep.Limit, rep.Suggestion
	if l == nil || s == nil {
		return nil
	}
	found := s.found
	bursts := burstsTo(max(l.Burst, found.ForClients(l.index, 0)))
	if i, is := slices.BinarySearch(bursts, l.Burst); !is {
		bursts = slices.Insert(bursts, i, l.Burst)
	}
	clients, requests := found.Refusals(l.index, bursts)
	c := &curve{Rate: l.Rate, Share: 100 * s.Share, Requests: requests != nil}
	for i, burst := range bursts {
		row := curveRow{Burst: count(burst), Suggested: burst == l.Burst,
			Clients: countOf(clients[i], found.Matter())}
		if c.Requests {
			row.Requests = countOf(requests[i], found.Requests())
		}
		c.Rows = append(c.Rows, row)
	}
	return c
}

// countOf returns the cell of a count with its share of all, by which it is drawn.
func countOf[N integer](n, all N) cell {
	fraction := share(uint64(n), uint64(all))
	return cell{fmt.Sprintf("%s (%s)", grouped(n), percent(fraction)), 100 * fraction}
}

// burstsTo returns bursts from 1 to greatest, each at most a tenth or 1 above the one before: about
// 200 up to the greatest burst of all.
func burstsTo(greatest uint64) (bursts []uint64) {
	for b := uint64(1); b < greatest; b += max(1, b/10) {
		bursts = append(bursts, b)
	}
	return append(bursts, greatest)
}
