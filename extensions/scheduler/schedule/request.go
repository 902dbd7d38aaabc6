package schedule

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract/words"
)

const (
	minDelay = time.Second
	maxAhead = 50 * 366 * 24 * time.Hour
	// maxMessage is the most bytes of a message and its payload: a thousand such
	// rows still fit into one answer of the kernel.
	maxMessage = 8 << 10
)

// Request has the fields of a schedule that a caller gives at creation or in an
// edit. Absent fields are nil.
type Request struct {
	Message      *string         `json:"message"`
	DelaySeconds *float64        `json:"delay_seconds"`
	At           *string         `json:"at"`
	Cron         *string         `json:"cron"`
	EveryDays    *int            `json:"every_days"`
	EverySeconds *float64        `json:"every_seconds"`
	Until        *string         `json:"until"`
	Timezone     *string         `json:"timezone"`
	ChannelID    *string         `json:"channel_id"`
	Person       *string         `json:"person"` // who gets it; the caller finds them
	Topic        *string         `json:"topic"`
	Payload      json.RawMessage `json:"payload"`
	Grace        *Grace          `json:"grace"`
	// Attachments are references to files of the conversation. The caller finds them.
	Attachments []string `json:"attachments"`
}

// Grace is how overdue a recurring schedule may be and still fire, in seconds.
// In JSON it is a number or a duration such as "30m".
type Grace float64

// UnmarshalJSON implements json.Unmarshaler.
func (g *Grace) UnmarshalJSON(data []byte) error {
	var n float64
	if err := json.Unmarshal(data, &n); err != nil {
		var text string
		if json.Unmarshal(data, &text) != nil {
			return fmt.Errorf(`parse grace %s: use seconds, or a duration such as "30m"`, data)
		}
		d, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf(`parse grace %q: use seconds, or a duration such as "30m"`, text)
		}
		n = d.Seconds()
	}
	if n < 0 {
		return errors.New("grace must not be negative")
	}
	*g = Grace(n)
	return nil
}

// Env is the environment of a request.
type Env struct {
	Now      time.Time
	Timezone string        // the default
	MinEvery time.Duration // shortest interval
}

// New returns a schedule for a request, without an id. The notes are information
// for the person that is not an error.
func New(kind string, r Request, env Env) (Schedule, []string, error) {
	s := Schedule{
		Revision: 1, Kind: kind, State: Active, Topic: TopicNotify,
		Timezone: env.Timezone, CreatedAt: *instant(env.Now),
	}
	if r.Payload == nil {
		r.Payload = json.RawMessage("{}")
	}
	r = r.withoutBlanks()
	if kind == Once && r.At == nil && r.DelaySeconds == nil {
		return Schedule{}, nil, errors.New("time is missing: give delay_seconds or at")
	}
	if kind == Recurring && r.Cron == nil && r.EverySeconds == nil {
		return Schedule{}, nil, errors.New("time is missing: give cron or every_seconds")
	}
	return s.apply(r, env, true)
}

// Edit changes the fields that the request gives. A one-shot that has fired can be given
// another time for a day.
func (s Schedule) Edit(r Request, env Env) (Schedule, []string, error) {
	again := s.firedLately(env.Now) && (r.withoutBlanks().At != nil || r.DelaySeconds != nil)
	if s.Finished() && !again {
		return Schedule{}, nil, fmt.Errorf("%s is %s and cannot be edited: create a new schedule", s.ID, s.State)
	}
	until := r.Until // an empty one removes the end
	r = r.withoutBlanks()
	r.Until = until
	if !again {
		return s.apply(r, env, false)
	}
	s.State, s.FinishedAt = Active, nil
	moved, notes, err := s.apply(r, env, false)
	if err != nil {
		return Schedule{}, nil, err
	}
	return moved.WithAnswer(Answer{Fire: s.Fired, Again: moved.At}), notes, nil
}

// withoutBlanks removes fields that models fill in without need: empty texts,
// and a zero next to the field that is meant.
func (r Request) withoutBlanks() Request {
	for _, field := range []**string{&r.At, &r.Cron, &r.Until, &r.Timezone} {
		if *field != nil && strings.TrimSpace(**field) == "" {
			*field = nil
		}
	}
	if r.At != nil && r.DelaySeconds != nil && *r.DelaySeconds == 0 {
		r.DelaySeconds = nil
	}
	if r.Cron != nil && r.EverySeconds != nil && *r.EverySeconds == 0 {
		r.EverySeconds = nil
	}
	if r.EveryDays != nil && *r.EveryDays == 0 {
		r.EveryDays = nil
	}
	return r
}

// Edits reports whether the request has any field.
func (r Request) Edits() bool {
	return r.Redefines() || r.Grace != nil || r.timing()
}

// Redefines reports whether the request changes what a schedule does, or for whom.
func (r Request) Redefines() bool {
	return r.Message != nil || r.Payload != nil || r.ChannelID != nil || r.Person != nil || r.Topic != nil
}

func (r Request) timing() bool {
	return r.At != nil || r.DelaySeconds != nil || r.Cron != nil || r.EverySeconds != nil ||
		r.EveryDays != nil || r.Until != nil || r.Timezone != nil
}

// Cancel ends a schedule. What was changed before cannot be undone any more.
func (s Schedule) Cancel(now time.Time) Schedule {
	s.Before = nil
	s.finish(Cancelled, now)
	return s
}

// Pause keeps a schedule from firing.
func (s Schedule) Pause() (Schedule, error) {
	if s.Finished() {
		return Schedule{}, fmt.Errorf("%s is %s and cannot be paused", s.ID, s.State)
	}
	s.State, s.Next = Paused, nil
	return s, nil
}

// Resume lets a paused schedule fire again, at its next time after now. Times
// that passed while it was paused do not fire.
func (s Schedule) Resume(now time.Time) (Schedule, error) {
	if s.State == Active {
		return s, nil
	}
	if s.Finished() {
		return Schedule{}, fmt.Errorf("%s is %s and cannot be resumed: create a new schedule", s.ID, s.State)
	}
	s.State, s.Problem = Active, ""
	return s.retime(now)
}

func (s Schedule) apply(r Request, env Env, isNew bool) (Schedule, []string, error) {
	steps := []func() error{
		func() error { return s.applyContent(r) },
		func() error { return s.applyZone(r, isNew) },
	}
	var notes []string
	switch s.Kind {
	case Once:
		steps = append(steps, func() (err error) { notes, err = s.applyOnce(r, env.Now); return err })
	default:
		steps = append(steps, func() (err error) { notes, err = s.applyRecurring(r, env); return err })
	}
	var problems []error
	for _, step := range steps {
		if err := step(); err != nil {
			problems = append(problems, err)
		}
	}
	if len(problems) > 0 {
		return Schedule{}, nil, errors.Join(problems...)
	}
	if !r.timing() {
		return s, notes, nil
	}
	if !isNew {
		s.Revision++
	}
	timed, err := s.retime(env.Now)
	if err != nil {
		return Schedule{}, nil, err
	}
	if timed.State == Paused {
		timed.Next = nil
	}
	return timed, notes, nil
}

// Realign recomputes the next time of a recurring schedule whose row was written
// with a clock that was more than a day ahead. Otherwise the schedule would not
// fire until that time. It ignores smaller differences: those times have fired.
func (s Schedule) Realign(now time.Time) (Schedule, bool) {
	if s.Kind != Recurring || s.State != Active {
		return s, false
	}
	last := s.Anchor
	if s.LastDue != nil {
		last = *s.LastDue
	}
	if last.Sub(now) <= 24*time.Hour {
		return s, false
	}
	if s.EverySeconds > 0 {
		s.Anchor = *instant(now)
	}
	realigned, err := s.retime(now)
	if err != nil || !realigned.Next.Before(*s.Next) {
		return s, false
	}
	realigned.Revision++
	realigned.LastDue = nil
	realigned.Anchor = *instant(now)
	return realigned, true
}

// retime sets the next due time after now.
func (s Schedule) retime(now time.Time) (Schedule, error) {
	rule, err := s.Rule()
	if err != nil {
		return Schedule{}, err
	}
	next := rule.Next(now)
	if next.IsZero() {
		return Schedule{}, s.neverFires(now)
	}
	s.Next = instant(next)
	return s, nil
}

func (s Schedule) neverFires(now time.Time) error {
	loc := s.Location()
	switch {
	case s.Kind == Once:
		return fmt.Errorf("%s is %s in the past (it is now %s): give a later time",
			words.LocalTime(*s.At, loc), words.Span(now.Sub(*s.At)), words.LocalTime(now, loc))
	case s.Until != nil:
		return fmt.Errorf("schedule never fires: %s has no time after now (%s)", s.Timing(), words.LocalTime(now, loc))
	default:
		return fmt.Errorf("cron %q never fires: no such date exists: %s", s.Cron, cronHelp)
	}
}

func (s *Schedule) applyZone(r Request, isNew bool) error {
	if r.Timezone != nil && strings.TrimSpace(*r.Timezone) != "" {
		s.Timezone = *r.Timezone
		if s.Kind == Once && !isNew && r.At == nil && r.DelaySeconds == nil {
			return errors.New("timezone is given without a time: also give at or delay_seconds")
		}
	}
	loc, err := FindZone(s.Timezone)
	if err != nil {
		return err
	}
	s.Timezone = loc.String()
	return nil
}

func (s *Schedule) applyOnce(r Request, now time.Time) (notes []string, err error) {
	switch {
	case r.Cron != nil, r.EverySeconds != nil, r.EveryDays != nil, r.Until != nil:
		return nil, errors.New("cron, every_days, every_seconds and until are for recurring schedules: " +
			"use schedule_recurring")
	case r.At != nil && r.DelaySeconds != nil:
		return nil, errors.New("both at and delay_seconds are given: give only one")
	case r.DelaySeconds != nil:
		if *r.DelaySeconds < minDelay.Seconds() {
			return nil, fmt.Errorf("delay_seconds is %v, must be at least 1", *r.DelaySeconds)
		}
		if *r.DelaySeconds > maxAhead.Seconds() {
			return nil, fmt.Errorf("delay_seconds is %.0f, must be at most 50 years", *r.DelaySeconds)
		}
		s.At = instant(now.Add(seconds(*r.DelaySeconds)))
	case r.At != nil:
		at, note, err := ParseAt("at", *r.At, s.Location(), now)
		if err != nil {
			return nil, err
		}
		if at.Sub(now) > maxAhead {
			return nil, fmt.Errorf("at %q is more than 50 years ahead: check the year", *r.At)
		}
		if note != "" {
			notes = append(notes, note)
		}
		s.At = instant(at)
	}
	s.Anchor = s.CreatedAt
	return notes, nil
}

func (s *Schedule) applyRecurring(r Request, env Env) (notes []string, err error) {
	switch {
	case r.At != nil, r.DelaySeconds != nil:
		return nil, errors.New("at and delay_seconds are for one-shots: use schedule_once")
	case r.Cron != nil && r.EverySeconds != nil:
		return nil, errors.New("both cron and every_seconds are given: give only one")
	case r.Cron != nil:
		if _, err := parseCron(*r.Cron); err != nil {
			return nil, err
		}
		s.Cron, s.EverySeconds, s.Anchor = strings.Join(strings.Fields(*r.Cron), " "), 0, *instant(env.Now)
	case r.EverySeconds != nil:
		every := *r.EverySeconds
		if every < env.MinEvery.Seconds() || every < 1 {
			return nil, fmt.Errorf("every_seconds is %v, must be at least %.0f", every, max(1, env.MinEvery.Seconds()))
		}
		if every > maxAhead.Seconds() {
			return nil, fmt.Errorf("every_seconds is %.0f, must be at most 50 years", every)
		}
		s.Cron, s.EverySeconds, s.Anchor = "", every, *instant(env.Now)
	}
	if err := s.applyEveryDays(r, env.Now); err != nil {
		return nil, err
	}
	if r.Grace != nil {
		grace := float64(*r.Grace)
		s.GraceSeconds = &grace
	}
	if r.Until != nil {
		s.Until = nil
		if strings.TrimSpace(*r.Until) != "" {
			until, note, err := parseUntil(*r.Until, s.Location(), env.Now)
			if err != nil {
				return nil, err
			}
			if !until.After(env.Now) {
				return nil, fmt.Errorf("until %s is in the past (it is now %s)",
					words.LocalTime(until, s.Location()), words.LocalTime(env.Now, s.Location()))
			}
			if until.Year() > 9000 { // JSON times end with the year 9999
				return nil, fmt.Errorf("until %q is too far ahead: omit it for no end", *r.Until)
			}
			if note != "" {
				notes = append(notes, note)
			}
			s.Until = instant(until)
		}
	}
	return notes, nil
}

// maxEveryDays is the most days between two due times of every_days.
const maxEveryDays = 366

// applyEveryDays sets the days on which a cron expression counts. A new expression
// counts on all days, unless the request says otherwise.
func (s *Schedule) applyEveryDays(r Request, now time.Time) error {
	if r.EveryDays == nil {
		if r.Cron != nil || r.EverySeconds != nil {
			s.EveryDays, s.FirstDay = 0, ""
		}
		return nil
	}
	every := *r.EveryDays
	switch {
	case s.Cron == "":
		return errors.New("every_days needs cron: give the time of day, such as \"0 8 * * *\"")
	case every < 1 || every > maxEveryDays:
		return fmt.Errorf("every_days is %d, must be 1 to %d", every, maxEveryDays)
	case every == 1:
		s.EveryDays, s.FirstDay = 0, ""
		return nil
	case every == s.EveryDays:
		return nil // the days stay the same
	}
	spec, err := parseCron(s.Cron)
	if err != nil {
		return err
	}
	first := spec.next(now, s.Location())
	if first.IsZero() {
		return s.neverFires(now)
	}
	s.EveryDays, s.FirstDay = every, wallOf(first, s.Location()).Format(time.DateOnly)
	return nil
}

// parseUntil is ParseAt for until, which may also be a date, inclusive.
func parseUntil(text string, loc *time.Location, now time.Time) (time.Time, string, error) {
	if day, err := time.Parse(time.DateOnly, strings.TrimSpace(text)); err == nil {
		end, _ := place(day.AddDate(0, 0, 1), loc)
		return end.Add(-time.Millisecond), "", nil
	}
	return ParseAt("until", text, loc, now)
}

func (s *Schedule) applyContent(r Request) error {
	if r.Topic != nil && *r.Topic != "" {
		if s.Topic = *r.Topic; !allowedTopic(s.Topic) {
			return fmt.Errorf("topic %q cannot be scheduled: use %s to send the user a message, "+
				"%s to have the agent act, or a topic of an extension such as lights.on", s.Topic, TopicNotify,
				TopicTask)
		}
	}
	if r.Message != nil {
		s.Message = strings.TrimSpace(*r.Message)
	}
	if r.ChannelID != nil {
		s.ChannelID = *r.ChannelID
	}
	if r.Payload != nil && string(r.Payload) != "null" {
		if err := s.applyPayload(r); err != nil {
			return err
		}
	}
	if s.Message == "" && systemTopic(s.Topic) {
		return errors.New("message is empty: give the text of the reminder or the task")
	}
	if size := len(s.Message) + len(s.Payload); size > maxMessage {
		return fmt.Errorf("message and payload have %d bytes, must be at most %d", size, maxMessage)
	}
	return nil
}

// applyPayload sets the payload. For a topic of the system it accepts only known
// fields, so that a destination in the payload is checked too.
func (s *Schedule) applyPayload(r Request) error {
	fields := map[string]any{}
	if err := json.Unmarshal(r.Payload, &fields); err != nil {
		return errors.New("payload is not a JSON object")
	}
	if channel, ok := fields["channel_id"].(string); ok && channel != "" && (r.ChannelID == nil || *r.ChannelID == "") {
		s.ChannelID = channel
	}
	delete(fields, "channel_id")
	delete(fields, "reply_to")
	if systemTopic(s.Topic) {
		for _, name := range []string{"text", "prompt"} {
			if text, ok := fields[name].(string); ok && s.Message == "" {
				s.Message = strings.TrimSpace(text)
			}
			delete(fields, name)
		}
		for name := range fields {
			if known := map[bool]string{true: "verbatim", false: "agent_id"}[s.Topic == TopicNotify]; name != known {
				return fmt.Errorf("payload has the field %q, which %s does not support", name, s.Topic)
			}
		}
	}
	s.Payload = nil
	if len(fields) > 0 {
		s.Payload, _ = json.Marshal(fields) // cannot fail: it was decoded from JSON
	}
	return nil
}
