package proxy

import (
	"math"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// refuseNew makes the kernel refuse new connections as if the listener were closed, and reports
// whether it does. The listener can still accept the connections that clients have begun.
// Closing it would reset them.
func refuseNew(l *net.TCPListener) (ok bool) {
	const nowhere = math.MaxInt32 // a network interface that does not exist
	if conn, err := l.SyscallConn(); err == nil {
		_ = conn.Control(func(fd uintptr) { // an error leaves it false
			ok = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_BINDTOIFINDEX, nowhere) == nil
		})
	}
	return ok
}

// queued reports whether the kernel has connections that the listener has not accepted. Without
// processor time it accepts late, and closing it would reset them.
func queued(l *net.TCPListener) bool { return tcpInfo(l).Unacked > 0 } // the length of its queue

func bytesTaken(c *net.TCPConn) uint64 { return tcpInfo(c).Bytes_acked }

// giveUpAfter makes the kernel give up a connection if the other side, which may be gone, takes
// nothing for a time. By default, and with 0, it tries for a quarter of an hour, and waits for an
// other side that is busy, as the one of a WebSocket may be.
func giveUpAfter(d time.Duration, c net.Conn) {
	ms := int(min(d.Milliseconds(), math.MaxInt32))
	if conn, err := c.(*net.TCPConn).SyscallConn(); err == nil {
		_ = conn.Control(func(fd uintptr) { // an error leaves the default
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, ms)
		})
	}
}

func tcpInfo(c syscall.Conn) (info unix.TCPInfo) {
	if conn, err := c.SyscallConn(); err == nil {
		_ = conn.Control(func(fd uintptr) {
			got, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
			if err == nil {
				info = *got
			}
		})
	}
	return info
}
