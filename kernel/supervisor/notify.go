package supervisor

import (
	"fmt"
	"time"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
)

// tell queues a call of the observer. Calls for one id are made in order and
// without mu, by one goroutine that lives while there are any.
func (s *Supervisor) tell(id string, call func()) {
	waiting, busy := s.calls[id]
	s.calls[id] = append(waiting, call)
	if busy {
		return
	}
	s.work.Go(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for len(s.calls[id]) > 0 {
			call := s.calls[id][0]
			s.calls[id] = s.calls[id][1:]
			s.mu.Unlock()
			call()
			s.mu.Lock()
		}
		delete(s.calls, id)
		s.settled.Broadcast()
	})
}

// tellGone ends the announced generation. Nothing of the extension starts
// before the observer has returned.
func (s *Supervisor) tellGone(m *member, reason string) {
	if m.instance != nil {
		m.instance.cancel(GoneError{fmt.Errorf("extension %s: %s", m.id, reason)})
		m.instance = nil
	}
	if m.announced == 0 {
		return
	}
	id, generation := m.id, m.announced
	m.announced = 0
	m.readiness = nil
	m.leaving++
	s.tell(m.id, func() {
		s.options.Observer.Gone(id, generation, reason)
		s.mu.Lock()
		defer s.mu.Unlock()
		m.leaving--
		s.reconcile()
	})
}

// publish passes every status that has changed to the observer.
func (s *Supervisor) publish() {
	for _, id := range sortedKeys(s.members) {
		s.publishMember(s.members[id])
	}
}

func (s *Supervisor) publishMember(m *member) {
	status := s.status(m)
	status.Since = m.shown.Since
	if status.State != m.shown.State {
		status.Since = time.Now()
	}
	if status == m.shown {
		return
	}
	m.shown = status
	s.tell(m.id, func() { s.options.Observer.Changed(status) })
}

// status is the present status of m.
func (s *Supervisor) status(m *member) Status {
	status := Status{
		ID: m.id, Name: m.spec.Name, Generation: m.generation, Restarts: max(0, m.starts-1),
		LastError: m.lastError, LastErrorAt: m.lastErrorAt, Crash: m.crash,
		Readiness: m.readiness.GetState(), ReadinessDetail: m.readiness.GetDetail(),
	}
	u, failure := m.unit, m.recovery
	if u != nil && !u.recovery.ready() {
		failure = &u.recovery
	}
	if m.state != down && u.proc != nil {
		status.PID = u.proc.PID
	}
	_, wanted := s.specs[m.id]
	obstacle, waiting := s.obstacle(m), s.waitsFor(m)
	switch {
	case m.state == stopping, m.state != down && u.phase == quitting:
		status.State = Stopping
	case m.state == active:
		status.State = Active
	case m.state != down:
		status.State = Starting
	case !wanted:
		status.State, status.Detail = Inactive, "removed"
	case s.stopping:
		status.State, status.Detail, status.Between = Inactive, "the kernel is stopping", Stopping
	case u == nil:
		status.State, status.Detail, status.Between = Inactive, "waits for its former process to end", Starting
	case failure.down():
		status.State, status.Detail = failure.final, m.lastError
	case obstacle != "":
		status.State, status.Detail = Inactive, obstacle
	case failure.waits():
		status.State, status.Detail, status.RetryAt = BackingOff, m.lastError, failure.retryAt
	case waiting != "":
		status.State, status.Detail, status.Between = Inactive, "waits for "+waiting, Starting
	default:
		status.State = Starting
	}
	return status
}

func (s *Supervisor) setReadiness(m *member, r *extensionv1.Readiness) {
	if r.GetState() != extensionv1.Readiness_STATE_UNSPECIFIED {
		if m.unit != nil && m.unit.proc != nil {
			r.Detail = m.unit.proc.Output.Clean(r.GetDetail())
		}
		m.readiness = r
	}
}
