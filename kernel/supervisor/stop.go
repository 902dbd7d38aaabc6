package supervisor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
)

// shutdownSlack is added to the grace for the answer's way back.
const shutdownSlack = 250 * time.Millisecond

// quit ends the process of a unit: its extensions finish what is in flight,
// then it is asked to exit, and whatever does not happen in time is replaced by
// SIGKILL.
func (s *Supervisor) quit(u *unit) {
	grace := u.bounds().grace
	var instances []*Instance
	for _, m := range u.members {
		if m.instance != nil {
			instances = append(instances, m.instance)
		}
	}
	u.phase = quitting
	proc := u.proc
	s.work.Go(func() {
		results := make(chan error, len(instances))
		for _, i := range instances {
			go func() { results <- shutdown(proc, i, grace) }()
		}
		var err error
		for range instances {
			err = errors.Join(err, <-results)
		}
		if err != nil {
			proc.Kill("it was stopped by force: " + err.Error())
		}
		proc.Quit()
		timer := time.NewTimer(quitGrace)
		defer timer.Stop()
		select {
		case <-proc.Done():
		case <-timer.C:
			proc.Kill("it was stopped by force: it did not exit after it had finished")
		}
	})
}

// shutdown has one extension finish. An error means that it does not answer.
func shutdown(proc process, i *Instance, grace time.Duration) error {
	ctx, cancel := context.WithTimeout(proc.Context(), grace+shutdownSlack)
	defer cancel()
	_, err := extensionv1.NewExtensionClient(i.Conn).Shutdown(ctx, &extensionv1.ShutdownRequest{GraceMs: grace.Milliseconds()})
	if proc.Context().Err() == nil && status.Code(err) == codes.DeadlineExceeded {
		return fmt.Errorf("%s did not finish within %s (run.shutdown_grace)", i.ID, grace)
	}
	return nil
}

// stopMember ends one extension of a process that others go on using.
func (s *Supervisor) stopMember(m *member, reason string) {
	m.stopping = true
	instance, proc, grace := m.instance, m.unit.proc, m.spec.ShutdownGrace
	s.work.Go(func() {
		if err := shutdown(proc, instance, grace); err != nil {
			proc.Kill(err.Error())
			return // the exit takes it along
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if m.instance == instance && m.stopping {
			m.stopping = false
			s.tellGone(m, reason)
			s.reconcile()
		}
	})
}
