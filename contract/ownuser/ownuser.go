// Package ownuser listens on unix sockets for connections of the same user, and keeps
// one process from taking all connections. File modes keep other users out already;
// this is a second check.
package ownuser

import (
	"errors"
	"fmt"
	"net"
	"os"
)

// ListenAt listens on a socket that only this user can open, in place of one that an
// earlier process has left. It does not change the umask, which belongs to the whole
// process: directories and extensions that are made at the same time would get it too.
func ListenAt(path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("remove the socket of an earlier process: %w", err)
	}
	listener, err := net.Listen("unix", path) //nolint:noctx // making a socket does not wait
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("listen on %s: %w", path, err), listener.Close())
	}
	return listener, nil
}

// Check refuses a connection from another user's process, and returns the process
// id. It checks the process that connected, which may have passed the connection on.
func Check(c net.Conn) (pid int, err error) {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return 0, errors.New("not a unix socket")
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return 0, err
	}
	var uid int
	var failed error
	err = raw.Control(func(fd uintptr) { uid, pid, failed = peer(int(fd)) }) //nolint:gosec // a descriptor is an int
	if err != nil {
		return 0, err
	}
	if failed == nil && uid != os.Geteuid() {
		failed = fmt.Errorf("this socket belongs to user %d, you are user %d", os.Geteuid(), uid)
	}
	return pid, failed
}
