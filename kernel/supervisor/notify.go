package supervisor

import (
	"fmt"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
)

// tell queues a call of the observer. Calls for one id are made in order and
// without mu, by one goroutine that lives as long as there are any.
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
		s.wake()
	})
}

// tellGone ends the announced generation. Nothing of the extension starts
// before the observer has returned.
func (s *Supervisor) tellGone(m *member, reason string) {
	if m.instance != nil {
		m.instance.cancel(goneError{fmt.Errorf("extension %s: %s", m.id, reason)})
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

// publish tells the observer of every status that has changed.
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

// status describes m as it is now.
func (s *Supervisor) status(m *member) Status {
	status := Status{
		ID: m.id, Name: m.spec.Name, Generation: m.generation, Restarts: max(0, m.starts-1),
		LastError: m.lastError, LastErrorAt: m.lastErrorAt, Crash: m.crash,
		Readiness: m.readiness.GetState(), ReadinessDetail: m.readiness.GetDetail(),
	}
	u := m.unit
	if u != nil && u.proc != nil && m.up() {
		status.PID = u.proc.PID()
	}
	_, wanted := s.specs[m.id]
	switch {
	case m.stopping, u != nil && u.phase == quitting && (m.instance != nil || m.starting):
		status.State = Stopping
	case m.instance != nil:
		status.State = Active
	case m.starting, m.booting:
		status.State = Starting
	case !wanted:
		status.State, status.Detail = Inactive, "removed"
	case s.stopping:
		status.State, status.Detail = Inactive, "the kernel is stopping"
		status.Between = Stopping
	case u == nil:
		status.State, status.Detail = Inactive, "waits for its former process to end"
		status.Between = Starting
	case u.recovery.failed || m.recovery.failed:
		status.State = Failed
		status.Detail = fmt.Sprintf("%s; see switchboard logs %[2]s; switchboard extensions restart %[2]s starts it again", m.lastError, m.id)
	case u.recovery.ended || m.recovery.ended:
		status.State, status.Detail = Inactive, m.lastError
	case s.obstacle(m) != "":
		status.State, status.Detail = Inactive, s.obstacle(m)
	case u.recovery.timer != nil:
		status.State, status.Detail, status.RetryAt = BackingOff, m.lastError, u.recovery.retryAt
	case m.recovery.timer != nil:
		status.State, status.Detail, status.RetryAt = BackingOff, m.lastError, m.recovery.retryAt
	default:
		status.State = Starting
		if status.Detail = s.waitsFor(m); status.Detail != "" {
			status.State, status.Between = Inactive, Starting
		}
	}
	return status
}

// waitsFor names the extensions that have to start first.
func (s *Supervisor) waitsFor(m *member) string {
	var ids []string
	for _, id := range m.spec.Requires {
		if dep := s.members[id]; dep == nil || dep.instance == nil {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return ""
	}
	return "waits for " + strings.Join(ids, ", ")
}

func (s *Supervisor) setReadiness(m *member, r *extensionv1.Readiness) {
	m.readinessNo++
	if r.GetState() != extensionv1.Readiness_STATE_UNSPECIFIED {
		if m.unit != nil && m.unit.proc != nil {
			r.Detail = m.unit.proc.Clean(r.GetDetail())
		}
		m.readiness = r
	}
}
