package supervisor

import (
	"fmt"
	"slices"
	"strings"
)

// reconcile takes every step that is possible now, passes changes to the observer,
// and ends calls of Wait. It is called after every event, with mu held, and decides
// from the present state alone.
func (s *Supervisor) reconcile() {
	for s.step() || s.breakCircle() {
	}
	s.publish()
	s.wake()
}

// wake ends calls of Wait when no change is in progress.
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
			if s.ends(u) && u.abort != nil {
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
	if s.ends(u) {
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
		needed = needed || m.changing() || s.startable(m) || m.state == active && s.obstacle(m) == ""
	}
	if !needed {
		s.quit(u)
		return true
	}
	changed := false
	for _, id := range sortedKeys(u.members) {
		switch m := u.members[id]; {
		case m.state == active && m.next != nil:
			s.stopMember(m, "the extension was stopped")
			changed = true
		case m.state == active && s.obstacle(m) != "":
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
		if _, kept := u.pending[id]; kept || m.leaving > 0 || m.state != down {
			continue
		}
		released = true
		delete(u.members, id)
		m.unit = nil
		m.recovery.stop()
		m.recovery = &recovery{}
	}
	return released
}

// adoptable reports whether the pending extensions of the unit are free.
func (s *Supervisor) adoptable(u *unit) bool {
	for id := range u.pending {
		if m := s.members[id]; m.unit != nil && m.unit != u {
			return false
		}
	}
	for _, m := range u.members {
		if m.leaving > 0 || m.state != down {
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
	if m.unit == nil || m.state != down || m.leaving > 0 || !m.recovery.ready() {
		return false
	}
	for _, id := range m.spec.Requires {
		dep := s.members[id]
		if dep == nil || dep.state != active || dep.unit.phase != running {
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
			return fmt.Sprintf("requires %s, which is down (%s)", id, dep.lastError)
		}
		if slices.Contains(path, id) {
			return "requires itself: " + strings.Join(next, " -> ") + ": remove one of requires.extensions"
		}
		if s.obstacleOnPath(dep, next) != "" {
			return fmt.Sprintf("requires %s, which cannot run", id)
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
			if other.unit != u && other.state != down && slices.Contains(other.spec.Requires, id) {
				return false
			}
		}
	}
	return true
}

// ends reports whether the process of the unit has to end.
func (s *Supervisor) ends(u *unit) bool { return s.stopping || u.leaving() }

// busy reports whether an answer of a process or of an extension is awaited.
func (s *Supervisor) busy() bool {
	for _, u := range s.units {
		if u.phase == launching || u.phase == quitting {
			return true
		}
	}
	for _, m := range s.members {
		if m.changing() {
			return true
		}
	}
	return false
}

// breakCircle ends units that wait for each other and would wait forever.
func (s *Supervisor) breakCircle() bool {
	if s.busy() {
		return false
	}
	broken := false
	for _, u := range s.units {
		if u.phase == running && s.ends(u) {
			s.quit(u)
			broken = true
		}
	}
	return broken
}

// isSettled reports whether no change is in progress, and all calls of the observer
// have returned.
func (s *Supervisor) isSettled() bool {
	if len(s.calls) > 0 || s.busy() {
		return false
	}
	for _, m := range s.members {
		if m.next != nil {
			return false
		}
	}
	for _, u := range s.units {
		if u.phase == running && s.ends(u) || u.pending != nil && !s.stopping {
			return false
		}
	}
	return true
}
