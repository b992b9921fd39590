// Package fuzz checks the implementations of the limiter against each other.
package fuzz
