// Package schedule defines schedules and computes when they are due and whether
// an overdue one fires. It does no input or output and reads no clock: functions
// take the current time as an argument.
//
// Promises:
//   - Next is strictly after its argument, and successive calls ascend.
//   - A local time that a clock change skips is due at the first instant after
//     the gap; one that happens twice is due only the first time. Cron
//     expressions with all hours run by elapsed time instead, so that a job that
//     runs every 15 minutes never pauses for an hour.
//   - An overdue one-shot fires once, marked late. An overdue recurring schedule
//     fires at most once, and the skipped due times are counted.
//   - New and Edit refuse a schedule that can never fire, with an error that says
//     how to correct it.
//
// Values are not safe for concurrent use. Instants are stored in UTC with
// millisecond precision.
package schedule

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/switchboard-run/switchboard/contract"
)

// State is the state of a schedule.
type State string

// The states. Only an active schedule fires. Done and cancelled ones stay
// visible for a while.
const (
	Active    State = "active"
	Paused    State = "paused"
	Done      State = "done"
	Cancelled State = "cancelled"
)

// The kinds of schedules.
const (
	Once      = "once"
	Recurring = "recurring"
)

// Schedule is a schedule, and its stored form as JSON.
type Schedule struct {
	ID       string `json:"id"`
	Revision int64  `json:"revision"` // incremented when the timing changes; part of the dedupe key
	Kind     string `json:"kind"`
	State    State  `json:"state"`
	Owner    string `json:"owner,omitempty"` // the extension whose manifest declares it
	Name     string `json:"name,omitempty"`  // its name there

	Message   string          `json:"message,omitempty"`
	Topic     string          `json:"topic"`
	Payload   json.RawMessage `json:"payload,omitempty"`
	ChannelID string          `json:"channel_id,omitempty"`
	// Attachments go with the notice; the stored schedule keeps their files.
	Attachments []contract.Attachment `json:"attachments,omitempty"`
	ReplyTo     string                `json:"reply_to,omitempty"` // opaque handle of the conversation that asked
	// To is the other person who gets the notice, in ReplyTo, or the result of the job.
	To *contract.Recipient `json:"to,omitempty"`

	Timezone     string     `json:"timezone"`
	At           *time.Time `json:"at,omitempty"`
	Cron         string     `json:"cron,omitempty"`
	EveryDays    int        `json:"every_days,omitempty"` // with Cron: only every n-th day from FirstDay on
	FirstDay     string     `json:"first_day,omitempty"`
	EverySeconds float64    `json:"every_seconds,omitempty"`
	Anchor       time.Time  `json:"anchor"` // start of every_seconds
	Until        *time.Time `json:"until,omitempty"`
	GraceSeconds *float64   `json:"grace_seconds,omitempty"`

	Next *time.Time `json:"next,omitempty"` // next due time; only while active

	Fired       int64      `json:"fired,omitempty"`
	LastDue     *time.Time `json:"last_due,omitempty"`
	LastFired   *time.Time `json:"last_fired,omitempty"`
	LastKey     string     `json:"last_key,omitempty"` // dedupe key of the last fire
	Skipped     int64      `json:"skipped,omitempty"`
	LastSkipped *time.Time `json:"last_skipped,omitempty"`
	Problem     string     `json:"problem,omitempty"` // why it could not fire

	CreatedAt time.Time `json:"created_at"`
	CreatedBy string    `json:"created_by,omitempty"` // as shown to people
	// Principal is for whom it was created, and where. One without belongs to the
	// household.
	Principal contract.Principal `json:"principal,omitzero"`
	// Language is that of the person who created it, an IETF tag; empty: English.
	Language   string     `json:"language,omitempty"`
	FinishedAt *time.Time `json:"finished_at,omitempty"`

	// Key is that of the program that added it; see the tool add_schedule.
	Key string `json:"key,omitempty"`

	Answers []Answer `json:"answers,omitempty"` // of a reminder, the newest last

	// Before is the schedule before the last change that a person or agent made.
	Before *Schedule `json:"before,omitempty"`
}

// Decode decodes and checks a stored schedule.
func Decode(data []byte) (Schedule, error) {
	var s Schedule
	if err := json.Unmarshal(data, &s); err != nil {
		return Schedule{}, fmt.Errorf("decode schedule: %w", err)
	}
	switch {
	case s.ID == "":
		return Schedule{}, errors.New("decode schedule: id is missing")
	case s.Kind != Once && s.Kind != Recurring:
		return Schedule{}, fmt.Errorf("decode schedule %s: unknown kind %q", s.ID, s.Kind)
	case s.State != Active && s.State != Paused && s.State != Done && s.State != Cancelled:
		return Schedule{}, fmt.Errorf("decode schedule %s: unknown state %q", s.ID, s.State)
	case s.State == Active && (s.Next == nil || s.Next.IsZero()):
		return Schedule{}, fmt.Errorf("decode schedule %s: active without a next time", s.ID)
	}
	return s, nil
}

// Encode returns the stored form.
func (s Schedule) Encode() ([]byte, error) {
	data, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode schedule %s: %w", s.ID, err)
	}
	return data, nil
}

// Finished reports whether the schedule will never fire again.
func (s Schedule) Finished() bool { return s.State == Done || s.State == Cancelled }

// Location returns the zone of the schedule, or UTC if this machine does not
// know it.
func (s Schedule) Location() *time.Location {
	loc, err := LoadZone(s.Timezone)
	if err != nil {
		return time.UTC
	}
	return loc
}

// Rule returns the timing of the schedule.
func (s Schedule) Rule() (Rule, error) {
	loc, err := LoadZone(s.Timezone)
	if err != nil {
		return Rule{}, err
	}
	r := Rule{loc: loc}
	if s.Until != nil {
		r.until = *s.Until
	}
	switch {
	case s.Kind == Once:
		if s.At == nil {
			return Rule{}, fmt.Errorf("schedule %s has no time", s.ID)
		}
		r.at = *s.At
	case s.Cron != "":
		if r.cron, err = parseCron(s.Cron); err != nil {
			return Rule{}, err
		}
		if s.EveryDays > 1 {
			r.days = s.EveryDays
			if r.first, err = time.Parse(time.DateOnly, s.FirstDay); err != nil {
				return Rule{}, fmt.Errorf("schedule %s: parse first_day: %w", s.ID, err)
			}
		}
	case s.EverySeconds > 0:
		r.every, r.anchor = seconds(s.EverySeconds), s.Anchor
	default:
		return Rule{}, fmt.Errorf("schedule %s has neither cron nor every_seconds", s.ID)
	}
	return r, nil
}

// DedupeKey returns the dedupe key of a fire's event.
func (s Schedule) DedupeKey(due time.Time) string {
	return fmt.Sprintf("sched:%s:%d:%s", s.ID, s.Revision, due.UTC().Format("2006-01-02T15:04:05.000Z"))
}

func (s *Schedule) finish(state State, now time.Time) {
	s.State, s.Next, s.FinishedAt = state, nil, instant(now)
}

// instant returns t with the stored precision.
func instant(t time.Time) *time.Time {
	t = t.Round(0).UTC().Truncate(time.Millisecond)
	return &t
}

func seconds(s float64) time.Duration {
	return time.Duration(s * float64(time.Second)).Round(time.Millisecond)
}
