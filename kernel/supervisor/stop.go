package supervisor

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
)

const (
	// shutdownSlack is added to the grace for the answer's way back.
	shutdownSlack = 250 * time.Millisecond
	// quitGrace is the time to exit once everything in flight is finished.
	quitGrace = 2 * time.Second
)

// quit ends the process of a unit: its extensions finish what is in flight, then it
// is asked to exit. After a timeout it gets SIGKILL.
func (s *Supervisor) quit(u *unit) {
	proc, grace := u.proc, u.process().ShutdownGrace
	var shutdowns errgroup.Group
	for _, m := range u.members {
		if i := m.instance; i != nil {
			shutdowns.Go(func() error { return shutdown(proc, i, grace) })
		}
	}
	u.phase = quitting
	s.work.Go(func() {
		if err := shutdowns.Wait(); err != nil {
			proc.Kill("the process was killed: " + err.Error())
		}
		proc.Quit()
		select {
		case <-proc.Done:
		case <-time.After(quitGrace):
			proc.Kill("the process was killed: it did not exit after its extensions had finished")
		}
	})
}

// shutdown shuts one extension down. An error means that it does not answer.
func shutdown(proc *Process, i *Instance, grace time.Duration) error {
	ctx, cancel := context.WithTimeout(proc.Context, grace+shutdownSlack)
	defer cancel()
	request := &extensionv1.ShutdownRequest{GraceMs: grace.Milliseconds()}
	_, err := extensionv1.NewExtensionClient(i.Conn).Shutdown(ctx, request)
	if proc.Context.Err() == nil && status.Code(err) == codes.DeadlineExceeded {
		return fmt.Errorf("%s did not finish within %s (run.shutdown_grace)", i.ID, grace)
	}
	return nil
}

// stopMember ends one extension of a process that continues.
func (s *Supervisor) stopMember(m *member) {
	reason := cmp.Or(s.obstacle(m), "the extension was stopped")
	m.state = stopping
	instance, proc, grace := m.instance, m.unit.proc, m.spec.ShutdownGrace
	s.work.Go(func() {
		if err := shutdown(proc, instance, grace); err != nil {
			proc.Kill(err.Error())
			return // its exit ends the member
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if m.instance == instance {
			m.state = down
			s.tellGone(m, reason)
			s.reconcile()
		}
	})
}
