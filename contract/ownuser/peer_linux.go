package ownuser

import "golang.org/x/sys/unix"

// peer returns the user id and the process id of the other end of a unix socket.
func peer(fd int) (uid, pid int, err error) {
	c, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, 0, err
	}
	return int(c.Uid), int(c.Pid), nil
}
