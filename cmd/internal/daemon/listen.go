package daemon

import (
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
)

// Listen opens an address: host:port, or unix:// and the path of a socket.
func Listen(address string) (net.Listener, error) {
	path, isUnix := strings.CutPrefix(address, "unix:")
	if !isUnix {
		return net.Listen("tcp", address)
	}
	path = strings.TrimPrefix(path, "//")
	if path == "" { // the system would choose a name
		return nil, errors.New("want the path of a socket after unix://")
	}
	l, err := net.Listen("unix", path)
	if errors.Is(err, syscall.EADDRINUSE) && isAbandoned(path) {
		if err = os.Remove(path); err == nil {
			l, err = net.Listen("unix", path)
		}
	}
	return l, err
}

// isAbandoned reports whether a path is a socket that no process listens on, as after a kill.
func isAbandoned(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Type() != os.ModeSocket {
		return false
	}
	conn, err := net.Dial("unix", path)
	if err == nil {
		_ = conn.Close() // nothing was written
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}
