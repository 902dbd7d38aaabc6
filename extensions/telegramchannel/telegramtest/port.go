package telegramtest

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// port reserves a port while its server is down: a socket is bound to it but does not
// listen, so connections are refused.
type port struct {
	addr    string
	release func()
}

// takePort reserves a free loopback port.
func takePort() (*port, error) {
	syscall.ForkLock.RLock()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, fmt.Errorf("telegramtest: create a socket: %w", err)
	}
	p := &port{release: sync.OnceFunc(func() { _ = unix.Close(fd) })}
	if err = shareable(fd); err == nil {
		err = unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	}
	var bound unix.Sockaddr
	if err == nil {
		bound, err = unix.Getsockname(fd)
	}
	if err != nil {
		p.release()
		return nil, fmt.Errorf("telegramtest: reserve a port: %w", err)
	}
	p.addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(bound.(*unix.SockaddrInet4).Port))
	return p, nil
}

// listen listens on the port.
func (p *port) listen() (net.Listener, error) {
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		if failed := c.Control(func(fd uintptr) { err = shareable(int(fd)) }); failed != nil {
			return failed
		}
		return err
	}}
	l, err := lc.Listen(context.Background(), "tcp", p.addr)
	if err != nil {
		return nil, fmt.Errorf("telegramtest: listen on %s: %w", p.addr, err)
	}
	return l, nil
}

// shareable lets several sockets of the same user bind one port.
func shareable(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) }
