// Package ownuser tells who is at the other end of a unix socket, and keeps one
// process from taking all connections. Modes of files keep other users out; this
// is the second lock on the same door.
package ownuser

import (
	"errors"
	"fmt"
	"net"
	"os"
)

// Check refuses a connection from another user's process, and names the process.
// Who counts is who connected; later, the connection may be in other hands.
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
	if err := raw.Control(func(fd uintptr) { uid, pid, failed = peer(int(fd)) }); err != nil { //nolint:gosec // a descriptor is an int
		return 0, err
	}
	if failed == nil && uid != os.Geteuid() {
		failed = fmt.Errorf("this socket belongs to user %d, you are user %d", os.Geteuid(), uid)
	}
	return pid, failed
}
