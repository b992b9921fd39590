// Package hostile tests the real binaries of tb-proxy and tb-rls with hostile clients, under load,
// with faults around them, and behind a real Envoy.
package hostile
