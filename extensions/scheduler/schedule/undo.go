package schedule

import (
	"fmt"
	"time"
)

// ChangedFrom keeps what the schedule was before a change, for Undo. It keeps an
// unchanged message and payload only once.
func (s Schedule) ChangedFrom(old Schedule) Schedule {
	old.Before = nil
	if old.Message == s.Message && string(old.Payload) == string(s.Payload) {
		old.Message, old.Payload = "", nil
	}
	s.Before = &old
	return s
}

// Undo returns the schedule as it was before its last change, which also may be a
// cancellation. What has fired since stays counted. An undone change can be redone by
// another Undo.
func (s Schedule) Undo(now time.Time) (Schedule, error) {
	switch {
	case s.Before == nil:
		return Schedule{}, fmt.Errorf("%s was not changed: there is nothing to undo", s.ID)
	case s.State == Done:
		return Schedule{}, fmt.Errorf("%s is done and its change cannot be undone: create a new schedule", s.ID)
	}
	old := *s.Before
	if old.Message == "" && old.Payload == nil {
		old.Message, old.Payload = s.Message, s.Payload
	}
	old.Revision = s.Revision + 1
	old.Fired, old.LastDue, old.LastFired, old.LastKey = s.Fired, s.LastDue, s.LastFired, s.LastKey
	old.Skipped, old.LastSkipped = s.Skipped, s.LastSkipped
	if old.State == Active {
		timed, err := old.retime(now)
		if err != nil {
			return Schedule{}, err
		}
		old = timed
	}
	return old.ChangedFrom(s), nil
}
