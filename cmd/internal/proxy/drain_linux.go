package proxy

import (
	"math"
	"net"

	"golang.org/x/sys/unix"
)

// refuseNew makes the kernel refuse new connections as if the listener were closed, and reports
// whether it does. The listener can still accept the connections that clients have begun.
// Closing it would reset them.
func refuseNew(l *net.TCPListener) bool {
	conn, err := l.SyscallConn()
	if err != nil {
		return false
	}
	const nowhere = math.MaxInt32 // a network interface that does not exist
	bound := false
	err = conn.Control(func(fd uintptr) {
		bound = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_BINDTOIFINDEX, nowhere) == nil
	})
	return err == nil && bound
}

// queued reports whether the kernel has connections that the listener has not accepted. Without
// processor time it accepts late, and closing it would reset them.
func queued(l *net.TCPListener) bool {
	conn, err := l.SyscallConn()
	if err != nil {
		return false
	}
	var n uint32
	err = conn.Control(func(fd uintptr) {
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			n = info.Unacked // of a listener it is the length of the queue
		}
	})
	return err == nil && n > 0
}
