// Package load puts hundreds of goroutines on a limiter at the same time, and checks that the
// limiter granted no more, and no less, than the contract allows.
package load
