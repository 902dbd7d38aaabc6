package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
)

// launchUnit starts the process of an idle unit.
func (s *Supervisor) launchUnit(u *unit) {
	l := u.process()
	u.phase = launching
	u.started = l
	ctx, abort := context.WithCancelCause(context.Background())
	u.abort = abort
	s.work.Go(func() {
		began := time.Now()
		bounded, cancel := context.WithTimeoutCause(ctx, l.StartTimeout, tooSlow(l.StartTimeout))
		defer cancel()
		defer abort(nil)
		proc, err := s.start(bounded, l)
		took := time.Since(began)
		select {
		case <-s.begun: // the wait does not count
		case <-ctx.Done():
		}
		s.launched(u, proc, l.StartTimeout-took, err) //nolint:contextcheck // its starts have deadlines of their own
	})
}

// start starts a process, or serves an extension in this one.
func (s *Supervisor) start(ctx context.Context, l Launch) (*Process, error) {
	if l.Serve != nil {
		return startLocal(l.Serve)
	}
	return s.options.Launcher(ctx, l)
}

func tooSlow(timeout time.Duration) error {
	return fmt.Errorf("the extension did not finish starting within %s (run.start_timeout)", timeout)
}

// launched takes the result of a launch.
func (s *Supervisor) launched(u *unit, proc *Process, left time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u.phase, u.deadline = idle, time.Now().Add(left)
	switch {
	case errors.Is(err, errAborted):
	case err != nil:
		s.fail(&u.recovery, u.process().Restart, u.members, err)
	default:
		u.phase, u.proc = running, proc
		s.work.Go(func() {
			<-proc.Done
			s.exited(u, proc)
			proc.Release()
		})
		s.work.Go(func() { s.probe(u, proc) })
	}
	s.reconcile()
	u.deadline = time.Time{}
}

// exited takes the end of a process.
func (s *Supervisor) exited(u *unit, proc *Process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	end := proc.Exit
	planned := u.phase == quitting || (end.Clean && !u.serves())
	if planned && !end.Killed {
		end.Reason = "the extension was stopped"
	}
	u.phase, u.proc = idle, nil
	for _, id := range sortedKeys(u.members) {
		m := u.members[id]
		if m.state != starting { // else initialized comes
			m.state = down
		}
		s.tellGone(m, end.Reason)
	}
	s.options.Log.Debug("extension process ended", "extensions", sortedKeys(u.members), "pid", proc.PID,
		"planned", planned, "reason", end.Reason)
	if !planned {
		if restart := u.process().Restart; end.Clean && restart.Policy != Always {
			u.recovery.final = Inactive
			note(u.members, "the process ended by itself, with success, and restart.policy is "+string(restart.Policy), "")
		} else {
			s.fail(&u.recovery, restart, u.members, Failure{Err: errors.New(end.Reason), Crash: end.Crash})
		}
	}
	s.reconcile()
}

// serves reports whether the process is needed. One whose last extension was shut
// down may end by itself.
func (u *unit) serves() bool {
	return anyOf(u.members, func(m *member) bool { return m.state == starting || m.state == active })
}

// note keeps an error with extensions.
func note(members map[string]*member, text, crash string) {
	for _, m := range members {
		m.lastError, m.lastErrorAt, m.crash = text, time.Now(), crash
	}
}

// fail notes the failure of a process or of one extension, and plans the next start,
// or gives up.
func (s *Supervisor) fail(r *recovery, policy Restart, members map[string]*member, err error) {
	var f Failure
	errors.As(err, &f)
	note(members, err.Error(), f.Crash)
	ids := sortedKeys(members)
	delay, again := r.next(time.Now(), policy)
	if !again || f.Permanent {
		r.final = Failed
		s.options.Log.Error("extension failed", "extensions", ids, "error", err)
		return
	}
	s.options.Log.Warn("extension will be started again", "extensions", ids, "in", delay.Round(time.Millisecond).String(),
		"error", err)
	r.retryAt = time.Now().Add(delay)
	r.timer = time.AfterFunc(delay, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.reconcile()
	})
}

// startMember describes and initializes one extension in its running process.
func (s *Supervisor) startMember(m *member) {
	u := m.unit
	s.generation++
	m.generation = s.generation
	m.state = starting
	m.starts++
	deadline := u.deadline
	if deadline.IsZero() {
		deadline = time.Now().Add(m.spec.StartTimeout)
	}
	spec, proc := m.spec, u.proc
	i := &Instance{ID: m.id, Generation: m.generation, Conn: contract.ConnTo(m.id, proc.Conn), PID: proc.PID}
	s.work.Go(func() {
		ctx, cancel := context.WithDeadlineCause(proc.Context, deadline, tooSlow(spec.StartTimeout))
		defer cancel()
		readiness, err := s.initialize(ctx, m, spec, proc, i)
		if err != nil {
			err = awaitCause(ctx, err)
		}
		s.initialized(m, proc, i, readiness, err)
	})
}

// initialize calls Describe and Init.
func (s *Supervisor) initialize(ctx context.Context, m *member, spec Spec, proc *Process, i *Instance,
) (readiness *extensionv1.Readiness, err error) {
	client := extensionv1.NewExtensionClient(i.Conn)
	i.Description, err = client.Describe(ctx, &extensionv1.DescribeRequest{})
	if status.Code(err) == codes.Unimplemented {
		return nil, Failure{Permanent: true, Err: fmt.Errorf(
			"the extension does not serve %s: build it with the SDK of protocol version %d",
			extensionv1.Extension_ServiceDesc.ServiceName, contract.ProtocolVersion)}
	}
	if err != nil {
		return nil, fmt.Errorf("describe the extension: %w", answered(err))
	}
	if spec.Check != nil {
		if err := spec.Check(i.Description); err != nil {
			return nil, Failure{Err: err, Permanent: true}
		}
	}
	s.mu.Lock()
	m.announced = i.Generation
	s.mu.Unlock()
	request, err := spec.Init(i.Generation)
	if err != nil {
		return nil, fmt.Errorf("prepare the configuration: %w", err)
	}
	proc.Output.Conceal(maps.Values(request.GetSecrets()))
	answer, err := client.Init(ctx, request)
	if err != nil {
		if text := err.Error(); proc.Output.Clean(text) != text {
			return nil, fmt.Errorf("initialize the extension: %s", proc.Output.Clean(text))
		}
		return nil, fmt.Errorf("initialize the extension: %w", answered(err))
	}
	return answer.GetReadiness(), nil
}

// answered is an error of a call without gRPC's prefix.
func answered(err error) error {
	if s, ok := status.FromError(err); ok && s.Code() == codes.Unknown {
		return errors.New(s.Message())
	}
	return contract.FromStatus(err)
}

// causeGrace is the time in which the context of a process ends after a call that failed
// because of it.
const causeGrace = 200 * time.Millisecond

// awaitCause is context.Cause if a call failed because the process died or because of
// a timeout, and else the error of the call.
func awaitCause(ctx context.Context, err error) error {
	if errors.Is(err, contract.ErrGone) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		// gRPC may know before the context, which ends with the process too.
		select {
		case <-ctx.Done():
		case <-time.After(causeGrace):
		}
	}
	return cmp.Or(context.Cause(ctx), err)
}

// initialized takes the result of starting a member.
func (s *Supervisor) initialized(m *member, proc *Process, i *Instance, readiness *extensionv1.Readiness, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m.state = down
	u := m.unit
	switch {
	case u == nil || u.proc != proc:
		// Its process has ended in the meantime, and with it the generation.
		s.tellGone(m, "the process ended")
	case u.phase == quitting || proc.Context.Err() != nil:
		m.state = doomed // exited ends the generation
	case err != nil:
		s.tellGone(m, err.Error())
		s.fail(m.recovery, m.spec.Restart, map[string]*member{m.id: m}, err)
	default:
		i.ctx, i.cancel = context.WithCancelCause(proc.Context)
		m.state, m.instance = active, i
		if m.readiness == nil { // else there is a newer report
			s.setReadiness(m, readiness)
		}
		s.tell(m.id, func() { s.options.Observer.Active(i) })
	}
	s.reconcile()
}
