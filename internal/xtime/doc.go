// Package xtime checks package rate beside the newest golang.org/x/time/rate. It is a module of its
// own, so that no other module requires that one.
package xtime
