// Package outbound is a client that waits for its turn, so that the server need not refuse it.
//
//	client := &http.Client{Transport: outbound.New(http.DefaultTransport, outbound.PerHost(10, 5))}
//
// A [Transport] charges each attempt to a token bucket. A redirect, and a request that a caller
// above it sends again, are attempts of their own. An attempt waits until its tokens may be used,
// in the order in which the attempts have come, and within the context of its request. If the
// deadline is nearer than the wait, the attempt fails at once with a [*tb.WaitError], and takes
// nothing. If the context ends during the wait, the attempt gives back what it can: see
// [tb.Reservation.Cancel]. http.Client.Timeout sets such a deadline.
//
// # What the server says
//
// A Transport obeys the fields of docs/outbound.md, such as Retry-After, RateLimit, and those of
// GitHub and OpenAI. They only slow it down. A refusal with a wait, and an answer which says that
// nothing is left, hold the key of the attempt. At the end of the pause one attempt may go, and
// those behind it follow at the rate of the limit. What waits already keeps its order, and waits
// for the pause, too. No answer can cause a pause of more than [WithMaxPause], or fail a request.
// A [Rule] without a limit learns it.
//
// # What a limit bounds
//
// In any interval of d, the attempts of a key that leave a Transport cost at most the capacity,
// what the rate supplies in d, and what estimates have been too low or too high: see package tb.
// The server sees them later. If the time until then varies, it may see more in a shorter interval:
// see [Margin]. An attempt that waits for one limit has already taken from the others. If what goes
// meanwhile leaves too little of another one, it waits for that, too.
//
// net/http.Transport sends a request again by itself if the connection was closed before an answer.
// That is one attempt here.
package outbound
