package control

import (
	"errors"
	"fmt"
	"net"
	"os"
)

// guarded accepts connections of the own user alone.
type guarded struct{ net.Listener }

func (g guarded) Accept() (net.Conn, error) {
	for {
		c, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if sameUser(c) == nil {
			return c, nil
		}
		_ = c.Close()
	}
}

func sameUser(c net.Conn) error {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return errors.New("not a unix socket")
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return err
	}
	var uid int
	var failed error
	if err := raw.Control(func(fd uintptr) { uid, failed = peerUID(int(fd)) }); err != nil { //nolint:gosec // a descriptor is an int
		return err
	}
	if failed == nil && uid != os.Geteuid() {
		failed = fmt.Errorf("user %d is not user %d", uid, os.Geteuid())
	}
	return failed
}
