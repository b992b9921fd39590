package tb

import "time"

// Level is how full a bucket is at one clock reading.
type Level struct {
	// Tokens is the number of tokens in the bucket, fractions included. It is negative if
	// reservations have put the bucket in debt.
	Tokens float64
	// NextToken is the time until the bucket holds one more whole token, or its first one if it is in
	// debt. It is 0 if the bucket is full.
	NextToken time.Duration
	// Full is the time until the bucket is full, 0 if it is full. Both times are exact to the
	// nanosecond if no tokens are taken in between, and Never if the clock ends before.
	Full time.Duration
}
