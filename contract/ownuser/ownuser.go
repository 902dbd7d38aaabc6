// Package ownuser accepts connections of the same user on a unix socket, and keeps
// one process from taking all connections. File modes keep other users out already;
// this is a second check.
package ownuser

import (
	"errors"
	"fmt"
	"net"
	"os"
)

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
