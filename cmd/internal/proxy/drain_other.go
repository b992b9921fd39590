//go:build !linux

package proxy

import "net"

// refuseNew reports that the system cannot refuse new connections before the listener is closed.
// It may then reset connections that clients have begun.
func refuseNew(*net.TCPListener) bool { return false }

func queued(*net.TCPListener) bool { return false }
