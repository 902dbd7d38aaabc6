package supervisor

import (
	"fmt"
	"slices"
	"strings"
)

// reconcile takes every step that can be taken now, tells the observer what
// has changed, and wakes those who wait. It is called after whatever happened,
// with mu held, and decides from the present state alone.
func (s *Supervisor) reconcile() {
	for s.step() || s.breakCircle() {
	}
	s.publish()
	s.wake()
}

// wake ends the calls of Wait when there is nothing left to wait for.
func (s *Supervisor) wake() {
	if s.isSettled() {
		for _, waiter := range s.settled {
			close(waiter)
		}
		s.settled = nil
	}
}

// step changes something, or returns false.
func (s *Supervisor) step() bool {
	changed := false
	for _, key := range sortedKeys(s.units) {
		u := s.units[key]
		changed = u.takeNext() || changed
		switch u.phase {
		case idle:
			changed = s.stepIdle(u) || changed
		case launching:
			if (s.stopping || u.leaving()) && u.abort != nil {
				u.abort(errAborted)
				u.abort = nil
				changed = true
			}
		case running:
			changed = s.stepRunning(u) || changed
		case quitting:
		}
	}
	for id, m := range s.members {
		if _, wanted := s.specs[id]; !wanted && m.unit == nil {
			s.publishMember(m)
			delete(s.members, id)
		}
	}
	return changed
}

func (s *Supervisor) stepIdle(u *unit) bool {
	u.restart = false
	if u.pending != nil {
		released := s.release(u)
		if !s.adoptable(u) {
			return released
		}
		s.adopt(u)
		return true
	}
	if s.stopping || !u.recovery.ready() {
		return false
	}
	for _, m := range u.members {
		if s.startable(m) {
			s.launchUnit(u)
			return true
		}
	}
	return false
}

func (s *Supervisor) stepRunning(u *unit) bool {
	if s.stopping || u.leaving() {
		if s.mayQuit(u) {
			s.quit(u)
			return true
		}
		return false
	}
	if u.proc.Context().Err() != nil {
		return false // exited reports it
	}
	needed := false
	for _, m := range u.members {
		needed = needed || m.starting || m.stopping || s.startable(m) || (m.instance != nil && s.obstacle(m) == "")
	}
	if !needed {
		s.quit(u)
		return true
	}
	changed := false
	for _, id := range sortedKeys(u.members) {
		switch m := u.members[id]; {
		case m.instance != nil && !m.stopping && m.next != nil:
			s.stopMember(m, "it was stopped")
			changed = true
		case m.instance != nil && !m.stopping && s.obstacle(m) != "":
			s.stopMember(m, "an extension it requires is down")
			changed = true
		case s.startable(m):
			s.startMember(m)
			changed = true
		}
	}
	return changed
}

// release removes the extensions that an idle unit no longer serves: another unit
// may wait for them, while this one waits for those of the other.
func (s *Supervisor) release(u *unit) bool {
	released := false
	for id, m := range u.members {
		if _, kept := u.pending[id]; kept || m.leaving > 0 || m.up() {
			continue
		}
		released = true
		delete(u.members, id)
		m.unit = nil
		if m.recovery.timer != nil {
			m.recovery.timer.Stop()
		}
		m.recovery = &recovery{}
	}
	return released
}

// adoptable says that the extensions the unit shall serve are free.
func (s *Supervisor) adoptable(u *unit) bool {
	for id := range u.pending {
		if m := s.members[id]; m.unit != nil && m.unit != u {
			return false
		}
	}
	for _, m := range u.members {
		if m.leaving > 0 || m.up() {
			return false
		}
	}
	return true
}

// adopt gives an idle unit its pending extensions, and resets all failures.
func (s *Supervisor) adopt(u *unit) {
	for _, m := range u.members {
		m.recovery.reset()
	}
	u.recovery.reset()
	u.members = make(map[string]*member, len(u.pending))
	for id, spec := range u.pending {
		m := s.members[id]
		m.unit, m.spec, m.recovery = u, spec, &recovery{}
		if len(u.pending) == 1 {
			m.recovery = &u.recovery
		}
		m.next = nil
		u.members[id] = m
	}
	u.pending = nil
	if len(u.members) == 0 {
		delete(s.units, u.key)
	}
}

// startable reports whether m can be described and initialized now, in its process
// or a new one.
func (s *Supervisor) startable(m *member) bool {
	if m.unit == nil || m.up() || m.leaving > 0 || !m.recovery.ready() {
		return false
	}
	for _, id := range m.spec.Requires {
		dep := s.members[id]
		if dep == nil || dep.instance == nil || dep.stopping || dep.unit.phase != running {
			return false
		}
	}
	return s.obstacle(m) == ""
}

// obstacle says why m cannot run until a person acts: an extension that it
// requires, directly or through others, is missing or has failed.
func (s *Supervisor) obstacle(m *member) string { return s.obstacleOnPath(m, []string{m.id}) }

func (s *Supervisor) obstacleOnPath(m *member, path []string) string {
	for _, id := range m.spec.Requires {
		next := append(slices.Clip(path), id)
		dep := s.members[id]
		if _, wanted := s.specs[id]; dep == nil || !wanted {
			return fmt.Sprintf("requires %s, which is not installed or not enabled", id)
		}
		if dep.down() {
			return fmt.Sprintf("requires %s, which is down (%s): see switchboard logs %s", id, dep.lastError, id)
		}
		if slices.Contains(path, id) {
			return "requires itself: " + strings.Join(next, " -> ") + ": remove one of requires.extensions"
		}
		if s.obstacleOnPath(dep, next) != "" {
			return fmt.Sprintf("requires %s, which cannot run: see switchboard extensions list", id)
		}
	}
	return ""
}

func (m *member) down() bool {
	return m.unit != nil && (m.unit.recovery.down() || m.recovery.down())
}

// mayQuit reports whether the process can end now. A swap always can; a process that
// is removed waits for the extensions that require it and are removed too.
func (s *Supervisor) mayQuit(u *unit) bool {
	for id := range u.members {
		if _, kept := s.specs[id]; kept && !s.stopping {
			continue
		}
		for _, other := range s.members {
			if other.unit == u || !other.up() {
				continue
			}
			if slices.Contains(other.spec.Requires, id) {
				return false
			}
		}
	}
	return true
}

// breakCircle ends units that wait for each other and would wait forever.
func (s *Supervisor) breakCircle() bool {
	var waiting []*unit
	for _, u := range s.units {
		if u.phase == launching || u.phase == quitting {
			return false
		}
		for _, m := range u.members {
			if m.starting || m.stopping {
				return false
			}
		}
		if u.phase == running && (s.stopping || u.leaving()) {
			waiting = append(waiting, u)
		}
	}
	for _, u := range waiting {
		s.quit(u)
	}
	return len(waiting) > 0
}

// isSettled reports whether no change is in progress, and the observer has seen all.
func (s *Supervisor) isSettled() bool {
	if len(s.calls) > 0 {
		return false
	}
	for _, m := range s.members {
		if m.starting || m.stopping || m.next != nil {
			return false
		}
	}
	for _, u := range s.units {
		switch {
		case u.phase == launching || u.phase == quitting:
			return false
		case u.phase == running && (s.stopping || u.leaving()):
			return false
		case u.pending != nil && !s.stopping:
			return false
		}
	}
	return true
}
