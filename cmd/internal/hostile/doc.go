// Package hostile tests the real binary of tb-proxy with hostile clients, under load, and with
// faults around it.
package hostile
