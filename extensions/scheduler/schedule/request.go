package schedule

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

const (
	minDelay = time.Second
	maxAhead = 50 * 366 * 24 * time.Hour
	// maxMessage is the longest message with its payload, in bytes: a thousand
	// rows of this length still fit into one answer of the kernel.
	maxMessage = 8 << 10
)

// Request is what may be said about a schedule, at creation or in an edit. An
// absent field is nil.
type Request struct {
	Message      *string         `json:"message"`
	DelaySeconds *float64        `json:"delay_seconds"`
	At           *string         `json:"at"`
	Cron         *string         `json:"cron"`
	EverySeconds *float64        `json:"every_seconds"`
	Until        *string         `json:"until"`
	Timezone     *string         `json:"timezone"`
	ChannelID    *string         `json:"channel_id"`
	Topic        *string         `json:"topic"`
	Payload      json.RawMessage `json:"payload"`
	Grace        *Grace          `json:"grace"`
}

// Grace is how overdue a recurring schedule may be and still fire: a number of
// seconds or a duration such as "30m".
type Grace float64

// UnmarshalJSON reads either form.
func (g *Grace) UnmarshalJSON(data []byte) error {
	var n float64
	if err := json.Unmarshal(data, &n); err != nil {
		var text string
		if json.Unmarshal(data, &text) != nil {
			return fmt.Errorf(`grace %s cannot be read: give seconds, or a duration such as "30m"`, data)
		}
		d, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf(`grace %q cannot be read: give seconds, or a duration such as "30m"`, text)
		}
		n = d.Seconds()
	}
	if n < 0 {
		return errors.New("grace must not be negative")
	}
	*g = Grace(n)
	return nil
}

// Env is what a request is judged against.
type Env struct {
	Now      time.Time
	Timezone string        // of schedules that name none
	MinEvery time.Duration // shortest interval
}

// New makes a schedule from a request. It has no id yet. The notes say what a
// person should know although it is no error.
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
		return Schedule{}, nil, errors.New("no time is given: give delay_seconds or at")
	}
	if kind == Recurring && r.Cron == nil && r.EverySeconds == nil {
		return Schedule{}, nil, errors.New("no time is given: give cron or every_seconds")
	}
	return s.apply(r, env, true)
}

// Edit applies the fields that the request names. What is named in no field
// stays.
func (s Schedule) Edit(r Request, env Env) (Schedule, []string, error) {
	if s.Finished() {
		return Schedule{}, nil, fmt.Errorf("%s is %s and cannot be edited: create a new schedule", s.ID, s.State)
	}
	until := r.Until // an empty one takes the end away
	r = r.withoutBlanks()
	r.Until = until
	return s.apply(r, env, false)
}

// withoutBlanks drops what a model fills in although it does not mean it: empty
// texts, and zero beside the field that counts.
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
	return r
}

// Edits tells whether the request names anything at all.
func (r Request) Edits() bool {
	return r.Message != nil || r.Payload != nil || r.ChannelID != nil || r.Topic != nil || r.Grace != nil || r.timing()
}

func (r Request) timing() bool {
	return r.At != nil || r.DelaySeconds != nil || r.Cron != nil || r.EverySeconds != nil || r.Until != nil || r.Timezone != nil
}

// Cancel ends a schedule for good.
func (s Schedule) Cancel(now time.Time) Schedule {
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

// Resume lets a paused schedule fire again, at its next time after now: what
// became due while it was paused does not fire.
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

func (s Schedule) apply(r Request, env Env, fresh bool) (Schedule, []string, error) {
	steps := []func() error{
		func() error { return s.applyContent(r) },
		func() error { return s.applyZone(r, fresh) },
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
	if !fresh {
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

// Realign gives a recurring schedule a near next time again when its row was
// written under a clock that ran more than a day ahead of now; otherwise it
// would be silent until the clock has caught up. A smaller difference stays:
// the times between have fired.
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

// retime computes the next due time after now.
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
		return fmt.Errorf("%s is %s in the past (it is now %s): give a later time", LocalTime(*s.At, loc), Span(now.Sub(*s.At)), LocalTime(now, loc))
	case s.Until != nil:
		return fmt.Errorf("it never fires: no time of %s lies between now (%s) and until", s.Timing(), LocalTime(now, loc))
	default:
		return fmt.Errorf("cron %q never fires: no such date exists; %s", s.Cron, cronHelp)
	}
}

func (s *Schedule) applyZone(r Request, fresh bool) error {
	if r.Timezone != nil && strings.TrimSpace(*r.Timezone) != "" {
		s.Timezone = *r.Timezone
		if s.Kind == Once && !fresh && r.At == nil && r.DelaySeconds == nil {
			return errors.New("to move a one-shot to another timezone, give at (or delay_seconds) as well")
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
	case r.Cron != nil, r.EverySeconds != nil, r.Until != nil:
		return nil, errors.New("cron, every_seconds and until are for recurring schedules: use schedule_recurring")
	case r.At != nil && r.DelaySeconds != nil:
		return nil, errors.New("at and delay_seconds are both given: give one of them")
	case r.DelaySeconds != nil:
		if *r.DelaySeconds < minDelay.Seconds() {
			return nil, fmt.Errorf("delay_seconds is %v: it must be at least 1; a time in the past cannot be scheduled", *r.DelaySeconds)
		}
		if *r.DelaySeconds > maxAhead.Seconds() {
			return nil, fmt.Errorf("delay_seconds is %.0f, more than 50 years: give less", *r.DelaySeconds)
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
		return nil, errors.New("cron and every_seconds are both given: give one of them")
	case r.Cron != nil:
		if _, err := parseCron(*r.Cron); err != nil {
			return nil, err
		}
		s.Cron, s.EverySeconds, s.Anchor = strings.Join(strings.Fields(*r.Cron), " "), 0, *instant(env.Now)
	case r.EverySeconds != nil:
		every := *r.EverySeconds
		if every < env.MinEvery.Seconds() || every < 1 {
			return nil, fmt.Errorf("every_seconds is %v: the shortest interval is %.0f", every, max(1, env.MinEvery.Seconds()))
		}
		if every > maxAhead.Seconds() {
			return nil, fmt.Errorf("every_seconds is %.0f, more than 50 years: give less", every)
		}
		s.Cron, s.EverySeconds, s.Anchor = "", every, *instant(env.Now)
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
				return nil, fmt.Errorf("until %s is in the past (it is now %s)", LocalTime(until, s.Location()), LocalTime(env.Now, s.Location()))
			}
			if until.Year() > 9000 { // at 10000 the stored form ends
				return nil, fmt.Errorf("until %q is too far ahead: leave it out if there is no end", *r.Until)
			}
			if note != "" {
				notes = append(notes, note)
			}
			s.Until = instant(until)
		}
	}
	return notes, nil
}

// parseUntil also takes a date, which includes that day.
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
			return fmt.Errorf("topic %q cannot be scheduled: use %s to tell the user something, %s to have the agent act, or a topic of an extension such as lights.on", s.Topic, TopicNotify, TopicTask)
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
		return errors.New("message is empty: say what to remind of or what to do")
	}
	if len(s.Message)+len(s.Payload) > maxMessage {
		return fmt.Errorf("message and payload are %d bytes long: at most %d are possible", len(s.Message)+len(s.Payload), maxMessage)
	}
	return nil
}

// applyPayload takes from a payload for one of the system's topics what is
// known there, so that no destination gets past the checks.
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
			if name != "agent_id" || s.Topic == TopicNotify {
				return fmt.Errorf("payload has a field %q that %s does not know", name, s.Topic)
			}
		}
	}
	s.Payload = nil
	if len(fields) > 0 {
		s.Payload, _ = json.Marshal(fields) // it was JSON a moment ago
	}
	return nil
}
