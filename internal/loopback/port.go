// Package loopback reserves ports on loopback, for servers of tests that go down and come
// back on the same address.
package loopback

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Port reserves a port while its server is down: a socket is bound to it but does not
// listen, so connections are refused.
type Port struct {
	Addr    string // such as 127.0.0.1:40001
	Release func()
}

// Take reserves a free port.
func Take() (*Port, error) {
	syscall.ForkLock.RLock()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, fmt.Errorf("create a socket: %w", err)
	}
	p := &Port{Release: sync.OnceFunc(func() { _ = unix.Close(fd) })}
	if err = shareable(fd); err == nil {
		err = unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	}
	var bound unix.Sockaddr
	if err == nil {
		bound, err = unix.Getsockname(fd)
	}
	if err != nil {
		p.Release()
		return nil, fmt.Errorf("reserve a port: %w", err)
	}
	p.Addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(bound.(*unix.SockaddrInet4).Port))
	return p, nil
}

// Listen listens on the port.
func (p *Port) Listen() (net.Listener, error) {
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		if failed := c.Control(func(fd uintptr) { err = shareable(int(fd)) }); failed != nil {
			return failed
		}
		return err
	}}
	l, err := lc.Listen(context.Background(), "tcp", p.Addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", p.Addr, err)
	}
	return l, nil
}

// shareable lets several sockets of the same user bind one port.
func shareable(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) }
