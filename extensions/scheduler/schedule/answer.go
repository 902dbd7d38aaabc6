package schedule

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/words"
)

// The commands with which a person answers a reminder.
const (
	CommandDone   = "done"
	CommandSnooze = "snooze"
)

// Answer is what a person did about one fire of a reminder.
type Answer struct {
	Fire int64 `json:"fire"` // its number, from 1
	// Again is when the reminder comes again; nil: the person is done with it.
	Again *time.Time `json:"again,omitempty"`
}

// maxAnswers is how many answers are kept, the newest.
const maxAnswers = 20

// FireID names a fire, for commands.
func (s Schedule) FireID() string { return fmt.Sprintf("%s.%d", s.ID, s.Fired) }

// ParseFireID splits the id of a fire; without a number it is 0, for the newest.
func ParseFireID(text string) (id string, fire int64) {
	if before, after, ok := strings.Cut(text, "."); ok {
		if n, err := strconv.ParseInt(after, 10, 64); err == nil && n > 0 {
			return before, n
		}
	}
	return text, 0
}

// actions are the buttons below the reminder that fires.
func (s Schedule) actions() []contract.Action {
	say := func(text string) string { return words.Say(s.Language, text) }
	id := s.FireID()
	return []contract.Action{
		{Label: say("Done"), Command: "/" + CommandDone + " " + id},
		{Label: say("+10 min"), Command: "/" + CommandSnooze + " " + id + " 10m"},
		{Label: say("Tomorrow morning"), Command: "/" + CommandSnooze + " " + id + " tomorrow"},
	}
}

// AnswerTo returns the answer to a fire, if there was one.
func (s Schedule) AnswerTo(fire int64) (Answer, bool) {
	if i := slices.IndexFunc(s.Answers, func(a Answer) bool { return a.Fire == fire }); i >= 0 {
		return s.Answers[i], true
	}
	return Answer{}, false
}

// WithAnswer keeps an answer.
func (s Schedule) WithAnswer(a Answer) Schedule {
	all := slices.DeleteFunc(slices.Clone(s.Answers), func(old Answer) bool { return old.Fire == a.Fire })
	all = append(all, a)
	s.Answers = all[max(0, len(all)-maxAnswers):]
	return s
}

// firedLately reports whether a one-shot has fired so short a while ago that it can still
// be moved.
func (s Schedule) firedLately(now time.Time) bool {
	return s.Kind == Once && s.State == Done && s.LastFired != nil && now.Sub(*s.LastFired) < 24*time.Hour
}

// Again returns a one-shot that has fired, and fires again at a time.
func (s Schedule) Again(at time.Time) Schedule {
	s = s.WithAnswer(Answer{Fire: s.Fired, Again: instant(at)})
	s.Revision++
	s.State, s.At, s.Next, s.FinishedAt = Active, instant(at), instant(at), nil
	return s
}

// Extra returns a one-shot with the content of a recurring schedule, which stays as it is.
func (s Schedule) Extra(id string, at, now time.Time) Schedule {
	return Schedule{
		ID: id, Revision: 1, Kind: Once, State: Active,
		Message: s.Message, Topic: s.Topic, Payload: s.Payload, ChannelID: s.ChannelID,
		Attachments: s.Attachments, ReplyTo: s.ReplyTo,
		Timezone: s.Timezone, At: instant(at), Next: instant(at),
		CreatedAt: *instant(now), Anchor: *instant(now), CreatedBy: s.CreatedBy, Principal: s.Principal, Language: s.Language,
	}
}
