// Package fuzz runs random programs of calls on both implementations of the limiter, compares
// their answers with each other, and checks them against an exact bucket.
package fuzz
