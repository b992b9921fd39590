//go:build race

package grpclimit

const raceEnabled = true
