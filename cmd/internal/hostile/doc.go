// Package hostile tests the real binaries of tb-proxy and tb-rls with hostile clients, under load,
// with faults around them, behind a real Envoy, and for a long time.
package hostile
