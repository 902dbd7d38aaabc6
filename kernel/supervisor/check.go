package supervisor

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
)

const (
	// maxSilent is the number of probes in a row that may go unanswered.
	maxSilent = 3
	// stoppedTimeout is how long a process that a signal has stopped may stay so. It runs
	// nothing, however long it is given; one that is only busy has the time of maxSilent.
	stoppedTimeout = 2 * time.Second
)

// probe asks the active extensions of a process for their health, all at once, and
// kills a process that does not answer.
func (s *Supervisor) probe(u *unit, proc *Process) {
	ticks := time.Tick(s.options.ProbeInterval)
	for silent := 0; ; {
		select {
		case <-proc.Context.Done():
			return
		case <-ticks:
		}
		timeout, stopped := s.options.ProbeTimeout, proc.Stopped()
		if stopped {
			timeout = stoppedTimeout
		}
		if s.probeMembers(u, proc, timeout) == nil {
			silent = 0
		} else if silent++; stopped && proc.Stopped() {
			proc.Kill("the process was killed: a signal had stopped it")
		} else if silent == maxSilent {
			proc.Kill(fmt.Sprintf("the process was killed: %d health probes unanswered, each for %s", silent,
				s.options.ProbeTimeout))
		}
	}
}

// probeMembers probes the active extensions of a process, and returns an error if one does
// not answer.
func (s *Supervisor) probeMembers(u *unit, proc *Process, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(proc.Context, timeout)
	defer cancel()
	var probes errgroup.Group
	s.mu.Lock()
	for _, m := range u.members {
		if u.proc == proc && u.phase == running && m.state == active {
			instance, before := m.instance, m.readiness
			probes.Go(func() error { return s.probeMember(ctx, m, instance, before) })
		}
	}
	s.mu.Unlock()
	return probes.Wait()
}

// probeMember probes one member. An answer with an error is an answer too.
func (s *Supervisor) probeMember(ctx context.Context, m *member, instance *Instance, before *extensionv1.Readiness,
) error {
	readiness, err := extensionv1.NewExtensionClient(instance.Conn).Health(ctx, &extensionv1.HealthRequest{})
	if err != nil {
		switch status.Code(err) {
		case codes.DeadlineExceeded, codes.Unavailable, codes.Canceled:
			return err
		}
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.instance == instance && m.readiness == before { // no newer report
		s.setReadiness(m, readiness)
		s.publish()
	}
	return nil
}
