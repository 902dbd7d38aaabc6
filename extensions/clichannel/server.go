package clichannel

import (
	"context"
	"errors"
	"net"
	"sync"

	"github.com/switchboard-run/switchboard/sdk"
)

// server accepts terminals.
type server struct {
	kernel   kernel
	hub      *hub
	listener *net.UnixListener
	config   Config
	sameUser func(*net.UnixConn) error
	token    string

	cancel  context.CancelFunc
	running sync.WaitGroup
	serving sync.WaitGroup
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

// stop closes the socket and all connections, and waits for their end.
func (s *server) stop() error {
	s.cancel()
	s.running.Wait()
	return nil
}

func (s *server) accept(ctx context.Context) {
	defer s.serving.Wait()
	for {
		c, err := s.listener.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			s.kernel.Log().Warn("a terminal could not attach", "error", err)
			if !pauseAfterFailedAccept(ctx) {
				return
			}
			continue
		}
		s.serving.Go(func() { s.serve(ctx, c) })
	}
}

// report keeps the kernel informed whether somebody is there.
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
