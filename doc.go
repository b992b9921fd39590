// Package ratelimit has no code of its own. The limiter to use is in tb/cas, its
// contract in tb.
package ratelimit
