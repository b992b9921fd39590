// Package xtime checks package rate beside the newest golang.org/x/time/rate.
package xtime
