//go:build !linux

package proxy

import (
	"net"
	"time"
)

// refuseNew reports that the system cannot refuse new connections before the listener is closed.
// It may then reset connections that clients have begun.
func refuseNew(*net.TCPListener) bool { return false }

func queued(*net.TCPListener) bool { return false }

// bytesTaken returns 0, because it is not known. What a Write has passed to the kernel counts.
func bytesTaken(*net.TCPConn) uint64 { return 0 }

func giveUpAfter(time.Duration, net.Conn) {}
