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
	s.settled.Broadcast()
}

// step changes something, or returns false.
func (s *Supervisor) step() bool {
	changed := false
	for _, key := range sortedKeys(s.units) {
		switch u := s.units[key]; {
		case u.phase == idle:
			changed = s.stepIdle(u) || changed
		case u.phase == running:
			changed = s.stepRunning(u) || changed
		case u.phase == launching && s.ends(u):
			u.abort(errAborted)
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
	if !u.current() || len(u.wanted) == 0 {
		return s.adopt(u)
	}
	if s.stopping || !u.recovery.ready() || !anyOf(u.members, s.startable) {
		return false
	}
	s.launchUnit(u)
	return true
}

func (s *Supervisor) stepRunning(u *unit) bool {
	switch ends := s.ends(u); {
	case ends && !s.mayQuit(u), !ends && u.proc.Context.Err() != nil: // exited takes its end
		return false
	case ends, !anyOf(u.members, s.needed):
		s.quit(u)
		return true
	}
	changed := false
	for _, id := range sortedKeys(u.members) {
		m, next := u.members[id], u.wanted[id]
		stale := !m.runs(next)
		switch {
		case m.state == active && (stale || s.obstacle(m) != ""):
			s.stopMember(m)
		case stale && m.state == down && m.leaving == 0:
			m.spec = next
			m.recovery.reset()
		case s.startable(m):
			s.startMember(m)
		default:
			continue
		}
		changed = true
	}
	return changed
}

// needed reports whether an extension needs its process.
func (s *Supervisor) needed(m *member) bool {
	return m.changing() || s.startable(m) || m.state == active && s.obstacle(m) == ""
}

// adopt gives an idle unit its wanted extensions, without their failures, as soon as
// they are free. At once it releases those that it does not keep: another unit may
// wait for them, while this one waits for those of the other.
func (s *Supervisor) adopt(u *unit) (changed bool) {
	free := true
	for id, m := range u.members {
		switch _, kept := u.wanted[id]; {
		case m.state != down || m.leaving > 0:
			free = false
		case !kept:
			delete(u.members, id)
			m.unit = nil
			m.recovery.reset()
			changed = true
		}
	}
	for id := range u.wanted {
		owner := s.members[id].unit
		free = free && (owner == nil || owner == u)
	}
	if !free {
		return changed
	}
	u.resetFailures()
	for id, spec := range u.wanted {
		m := s.members[id]
		m.unit, m.spec, m.recovery = u, spec, &recovery{}
		if len(u.wanted) == 1 {
			m.recovery = &u.recovery
		}
		u.members[id] = m
	}
	if len(u.wanted) == 0 {
		delete(s.units, u.key)
	}
	return true
}

// startable reports whether m can be described and initialized now, in its process
// or a new one.
func (s *Supervisor) startable(m *member) bool {
	return m.unit != nil && m.state == down && m.leaving == 0 && m.recovery.ready() &&
		s.obstacle(m) == "" && s.waitsFor(m) == ""
}

// waitsFor names the extensions that have to start first.
func (s *Supervisor) waitsFor(m *member) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(m.spec.Requires), func(id string) bool {
		dep := s.members[id]
		return dep != nil && dep.state == active && dep.unit.phase == running
	}), ", ")
}

// obstacle says why m cannot run until a person acts: an extension that it
// requires, directly or through others, is missing or has failed.
func (s *Supervisor) obstacle(m *member) string { return s.obstacleOnPath(m, []string{m.id}) }

func (s *Supervisor) obstacleOnPath(m *member, path []string) string {
	for _, id := range m.spec.Requires {
		next := append(slices.Clip(path), id)
		dep := s.members[id]
		if _, wanted := s.specs[id]; !wanted {
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
	return !anyOf(u.members, func(m *member) bool {
		_, kept := s.specs[m.id]
		return (!kept || s.stopping) && anyOf(s.members, func(other *member) bool {
			return other.unit != u && other.state != down && slices.Contains(other.spec.Requires, m.id)
		})
	})
}

// ends reports whether the process of the unit has to end.
func (s *Supervisor) ends(u *unit) bool {
	return s.stopping || u.restart || !u.current() && !u.exchanges()
}

// busy reports whether an answer of a process or of an extension is awaited.
func (s *Supervisor) busy() bool {
	return anyOf(s.members, (*member).changing) ||
		anyOf(s.units, func(u *unit) bool { return u.phase == launching || u.phase == quitting })
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
