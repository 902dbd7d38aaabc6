package ownuser

import "golang.org/x/sys/unix"

// peer returns the user id and the process id of the other end of a unix socket.
func peer(fd int) (uid, pid int, err error) {
	c, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return 0, 0, err
	}
	pid, err = unix.GetsockoptInt(fd, unix.SOL_LOCAL, unix.LOCAL_PEERPID)
	return int(c.Uid), pid, err
}
