package clichannel

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/contract/ownuser"
	"github.com/switchboard-run/switchboard/extensions/clichannel/wire"
	"github.com/switchboard-run/switchboard/sdk"
)

// server accepts terminals.
type server struct {
	kernel       kernel
	hub          *hub
	files        *files
	listener     *ownuser.Listener
	config       Config
	token        string
	helloTimeout time.Duration
	writeTimeout time.Duration // of one frame

	cancel  context.CancelFunc
	running sync.WaitGroup
	serving sync.WaitGroup
}

func newServer(k kernel, c *channel, l net.Listener, config Config) *server {
	s := &server{
		kernel: k, hub: c.hub, files: c.files, config: config, token: c.token,
		helloTimeout: c.helloTimeout, writeTimeout: c.writeTimeout,
	}
	s.listener = ownuser.Listen(l, func(pid int) { k.Log().Debug("too many connections of a process", "pid", pid) })
	s.listener.Check = c.checkPeer
	s.listener.Foreign = func(c net.Conn, reason error) {
		k.Log().Warn("refused a terminal", "error", reason)
		refuse(wire.NewConn(c, writeTimeout), reason)
	}
	return s
}

func (s *server) start(ctx context.Context) {
	ctx, s.cancel = context.WithCancel(ctx)
	s.running.Go(func() { s.accept(ctx) })
	s.running.Go(func() { s.report(ctx) })
	s.running.Go(func() {
		<-ctx.Done()
		_ = s.listener.Close()
	})
}

// stop closes the socket and all connections, and waits for them to end.
func (s *server) stop() error {
	s.cancel()
	s.running.Wait()
	return nil
}

func (s *server) accept(ctx context.Context) {
	defer s.serving.Wait()
	for {
		c, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			s.kernel.Log().Warn("accept a terminal", "error", err)
			if !pauseAfterFailedAccept(ctx) {
				return
			}
			continue
		}
		s.serving.Go(func() { s.serve(ctx, c.(*ownuser.Conn)) })
	}
}

// report tells the kernel whether a terminal is attached.
func (s *server) report(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.hub.changed:
		}
		if s.hub.attached() > 0 {
			s.kernel.SetReadiness(sdk.Ready, "")
		} else {
			s.kernel.SetReadiness(sdk.Offline, noTerminal)
		}
	}
}
