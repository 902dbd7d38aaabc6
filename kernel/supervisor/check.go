package supervisor

import (
	"context"
	"errors"
	"fmt"
	"github.com/switchboard-run/switchboard/contract/sandbox"
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
	// diskEvery is the number of checks of memory and processes for one of the disk.
	diskEvery = 5
	// aloneEvery is how many times less often a process that starts no others is
	// checked.
	aloneEvery = 5
)

// check calls a function at each interval until the process ends. An error of the
// function kills it.
func (s *Supervisor) check(proc *Process, interval time.Duration, f func() error) {
	ticks := time.Tick(interval)
	for {
		select {
		case <-proc.Context.Done():
			return
		case <-ticks:
		}
		if err := f(); err != nil {
			proc.Kill("the process was killed: " + err.Error())
			return
		}
	}
}

// probe asks the active extensions of a process for their health, all at once, and
// kills a process that does not answer.
func (s *Supervisor) probe(u *unit, proc *Process) {
	silent := 0
	s.check(proc, s.options.ProbeInterval, func() error {
		timeout, stopped := s.options.ProbeTimeout, proc.Stopped()
		if stopped {
			timeout = stoppedTimeout
		}
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
		if probes.Wait() == nil {
			silent = 0
		} else if silent++; stopped && proc.Stopped() {
			return errors.New("a signal had stopped it")
		} else if silent == maxSilent {
			return fmt.Errorf("%d health probes unanswered, each for %s", silent, s.options.ProbeTimeout)
		}
		return nil
	})
}

// guard kills a process that exceeds one of its limits.
func (s *Supervisor) guard(proc *Process, l sandbox.Limits) {
	interval := s.options.UsageInterval
	if l.Alone {
		interval *= aloneEvery
	}
	n := 0
	s.check(proc, interval, func() error {
		n++
		return s.options.Guard(proc.PID, l, n%diskEvery == 0)
	})
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
