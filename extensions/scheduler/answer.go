package scheduler

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/extensions/scheduler/schedule"
	"github.com/switchboard-run/switchboard/sdk"
)

// recently is how long a reminder that came can be answered without its id.
const recently = 24 * time.Hour

var (
	errGone   = words.Errorf("there is no such reminder now: finished ones are kept for a week")
	errNoFire = words.Errorf("no reminder has come here in the last day; /schedules lists what is set")
	errNotDue = words.Errorf("this reminder has not come yet")
)

// answered is the result of a person's answer to a reminder.
type answered struct {
	ID     string     `json:"id"`
	Status string     `json:"status"` // done, snoozed, already
	Next   *time.Time `json:"next,omitempty"`
	Text   string     `json:"text"`
}

// done notes that the person is done with a reminder that came.
func (s *scheduler) done(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
	var args struct {
		ID string `json:"id"`
	}
	if err := c.Decode(&args); err != nil {
		return sdk.ToolResult{}, err
	}
	r, fire, err := s.fired(ctx, c, args.ID)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	if said := s.alreadyAnswered(c, r, fire); said != "" {
		return sdk.JSON(answered{ID: r.ID, Status: "already", Text: said})
	}
	return sdk.JSON(answered{ID: r.ID, Status: "done", Text: words.Say(c.Language, "Done.")},
		s.write(r.WithAnswer(schedule.Answer{Fire: fire}), r.version))
}

// snooze lets a reminder that came come again: a one-shot at a new time, and for a
// recurring one an extra one-shot beside the series.
func (s *scheduler) snooze(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
	var args struct {
		ID   string `json:"id"`
		When string `json:"when"`
	}
	if err := c.Decode(&args); err != nil {
		return sdk.ToolResult{}, err
	}
	id, when := splitSnooze(args.ID)
	r, fire, err := s.fired(ctx, c, id)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	if said := s.alreadyAnswered(c, r, fire); said != "" {
		return sdk.JSON(answered{ID: r.ID, Status: "already", Text: said})
	}
	now, zone := s.now(), s.zoneOf(c)
	at, err := schedule.ParseSnooze(cmp.Or(args.When, when), zone, now)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	out := answered{ID: r.ID, Status: "snoozed", Next: &at, Text: againText(c.Language, at.In(zone), now)}
	if r.Kind == schedule.Once {
		return sdk.JSON(out, s.write(r.Again(at).ChangedFrom(r.Schedule), r.version))
	}
	extra, counted := s.newID()
	out.ID = extra
	series := r.WithAnswer(schedule.Answer{Fire: fire, Again: &at})
	return sdk.JSON(out, counted, s.write(series, r.version), s.write(r.Extra(extra, at, now), 0))
}

// splitSnooze splits what a person writes after /snooze, both parts of which are optional:
// "r7.1 10m", "r7", "tomorrow morning".
func splitSnooze(text string) (id, when string) {
	text = strings.TrimSpace(text)
	first, rest, _ := strings.Cut(text, " ")
	if isID(first) {
		return first, rest
	}
	return "", text
}

// isID reports whether a word is the id of a schedule or a fire, as people write it.
func isID(word string) bool {
	id, _ := schedule.ParseFireID(strings.ToLower(strings.TrimPrefix(word, "#")))
	number, ok := strings.CutPrefix(id, "r")
	_, err := strconv.ParseUint(number, 10, 64)
	return ok && err == nil
}

// fired finds the reminder that a person answers, and the number of its fire: by the id of
// a fire or a schedule or, without an id, the newest in the conversation.
func (s *scheduler) fired(ctx context.Context, c sdk.ToolCall, name string) (r row, fire int64, err error) {
	if name == "" {
		if r, err = s.newestFired(ctx, c); err != nil {
			return r, 0, err
		}
		return r, r.Fired, nil
	}
	id, fire := schedule.ParseFireID(name)
	r, err = s.find(ctx, c, id)
	switch {
	case errors.Is(err, contract.ErrNotFound):
		return r, 0, errGone
	case err != nil:
		return r, 0, err
	case r.Topic != schedule.TopicNotify || r.Owner != "":
		return r, 0, words.Errorf("schedule %s is no reminder", r.ID)
	case r.Fired == 0 || fire > r.Fired:
		return r, 0, errNotDue
	}
	return r, cmp.Or(fire, r.Fired), nil
}

func (s *scheduler) newestFired(ctx context.Context, c sdk.ToolCall) (newest row, err error) {
	if err := s.ready(ctx); err != nil {
		return newest, err
	}
	since := s.now().Add(-recently)
	rows, err := s.all(ctx, c, func(sc schedule.Schedule) bool {
		_, answered := sc.AnswerTo(sc.Fired)
		return sc.Topic == schedule.TopicNotify && sc.Owner == "" && !answered && sc.ReplyTo == c.ReplyTo &&
			sc.LastFired != nil && sc.LastFired.After(since)
	})
	if err != nil {
		return newest, err
	}
	for _, r := range rows {
		if newest.LastFired == nil || r.LastFired.After(*newest.LastFired) {
			newest = r
		}
	}
	if newest.LastFired == nil {
		return newest, errNoFire
	}
	return newest, nil
}

// alreadyAnswered says what became of a fire that needs no answer any more; empty: it is
// open.
func (s *scheduler) alreadyAnswered(c sdk.ToolCall, r row, fire int64) string {
	a, ok := r.AnswerTo(fire)
	moved := r.Kind == schedule.Once && (r.State == schedule.Active || r.State == schedule.Paused) && r.At != nil
	switch {
	case r.Kind == schedule.Once && r.State == schedule.Cancelled:
		return words.Say(c.Language, "This reminder was cancelled.")
	case moved:
		return words.Say(c.Language, "This reminder was moved already, to %s.", words.Time(c.Language, r.At.In(r.Location())))
	case ok && a.Again != nil:
		return words.Say(c.Language, "This reminder was moved already, to %s.",
			words.Time(c.Language, a.Again.In(r.Location())))
	case ok:
		return words.Say(c.Language, "This is done already.")
	}
	return ""
}

// againText confirms when a reminder comes again; at is in the zone of the reminder.
func againText(language string, at, now time.Time) string {
	now = now.In(at.Location())
	tomorrow := now.AddDate(0, 0, 1)
	clock := at.Format("15:04")
	switch {
	case at.Year() == now.Year() && at.YearDay() == now.YearDay():
		return words.Say(language, "OK, I'll remind you again today at %s.", clock)
	case at.Year() == tomorrow.Year() && at.YearDay() == tomorrow.YearDay():
		return words.Say(language, "OK, I'll remind you again tomorrow at %s.", clock)
	}
	return words.Say(language, "OK, I'll remind you again on %s.", words.Time(language, at))
}
