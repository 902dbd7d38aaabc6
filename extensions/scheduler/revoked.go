package scheduler

import (
	"context"
	"slices"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/scheduler/schedule"
	"github.com/switchboard-run/switchboard/sdk"
)

// topicEnded says which schedules ended with the approval of a person.
const topicEnded = ID + ".ended"

// maxEnded is how many schedules one commit cancels.
const maxEnded = 200

// revoked cancels the schedules that a person who was revoked has set, or that were set
// in their conversations. The own ones of a person who was removed are deleted.
func (s *scheduler) revoked(ctx context.Context, e sdk.Event) (sdk.Effects, error) {
	var person contract.PersonRevoked
	if err := e.Decode(&person); err != nil {
		return nil, err
	}
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	theirs, err := s.all(ctx, sdk.ToolCall{}, func(sc schedule.Schedule) bool {
		return person.Deletes(sc.Principal) || !sc.Finished() &&
			(sc.ReplyTo != "" && slices.Contains(person.Conversations, sc.ReplyTo) || person.SetUp(sc.Principal))
	})
	if err != nil || len(theirs) == 0 {
		return nil, err
	}
	for len(theirs) > maxEnded {
		effects := s.end(theirs[:maxEnded], person)
		if _, err := s.k.Commit(ctx, effects...); err != nil {
			return nil, err
		}
		theirs = theirs[maxEnded:]
	}
	return s.end(theirs, person), nil
}

// end cancels or deletes schedules, and tells which ones would have fired. Of a person's
// own ones the owner is not told the text.
func (s *scheduler) end(rows []row, person contract.PersonRevoked) sdk.Effects {
	ended := contract.PersonEnded{Kind: "reminder"}
	var effects sdk.Effects
	for _, r := range rows {
		if person.Deletes(r.Principal) {
			effects = append(effects, forgetKey(r.Schedule, s.remove(r.ID, r.version))...)
		} else {
			effects = append(effects, s.write(r.Cancel(s.now()), r.version))
		}
		switch {
		case r.Finished():
		case r.Principal.Own:
			ended.Names = append(ended.Names, r.ID)
		default:
			ended.Names = append(ended.Names, r.ID+" "+quoted(r.Message, r.Topic))
		}
	}
	if len(ended.Names) > 0 {
		effects = append(effects, sdk.Publish(topicEnded, ended))
	}
	return effects
}
