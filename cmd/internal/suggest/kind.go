package suggest

// Kind is a kind of client.
type Kind uint8

// The kinds of clients. People ask for several paths. Attackers use many addresses, each for one
// request, or for one path such as /login; so does a client of an API.
const (
	SeveralPaths Kind = iota
	OnePath
	OneRequest
	Kinds // how many there are
)

// Matters reports whether a kind counts for a share of the clients, by the number of clients of
// each kind: the clients with several paths always, and the ones with one path if there are as
// many, as in the log of an API. A client with one request counts if there is no other one.
func (k Kind) Matters(clients [Kinds]uint64) bool {
	switch k {
	case SeveralPaths:
		return true
	case OnePath:
		return clients[OnePath] >= clients[SeveralPaths]
	}
	return clients[OnePath]+clients[SeveralPaths] == 0
}
