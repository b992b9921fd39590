// Package longrun calls limiters for ten years of simulated time, and compares each answer with
// an exact computation or the reference.
package longrun
