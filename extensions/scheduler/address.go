package scheduler

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/scheduler/schedule"
	"github.com/switchboard-run/switchboard/sdk"
)

// address makes a person, if one is named, the one whom a schedule reaches: a reminder goes
// to their private conversation, and a job is told to send its result there. The one who
// asks keeps it, and answers its questions.
func (s *scheduler) address(ctx context.Context, c sdk.ToolCall, sc *schedule.Schedule, person, channel *string) error {
	name := named(person)
	if name == "" {
		return nil
	}
	if sc.Topic != schedule.TopicNotify && sc.Topic != schedule.TopicTask {
		return fmt.Errorf("person goes with a reminder or a task: %s reaches no person", sc.Topic)
	}
	asked, err := s.k.Ask(ctx, contract.ToolFindPerson, map[string]string{"person": name, "channel_id": named(channel)})
	if err != nil {
		return fmt.Errorf("find %s: %w", name, err)
	}
	if asked.IsError {
		return fmt.Errorf("find %s: %s", name, asked.Content)
	}
	to := &contract.Recipient{}
	if err := json.Unmarshal([]byte(asked.Content), to); err != nil {
		return fmt.Errorf("find %s: decode the answer: %w", name, err)
	}
	to.Accounts, to.Timezone, to.Quiet = nil, "", "" // of this moment
	switch to.ReplyTo {
	case "":
		return errors.New("find " + name + ": there is no conversation with them")
	case c.ReplyTo: // the one who asks
		return nil
	}
	if sc.To = to; sc.Topic == schedule.TopicNotify {
		sc.ReplyTo, sc.ChannelID = to.ReplyTo, to.ChannelID
	} else {
		sc.ChannelID = ""
	}
	return nil
}

// readdress finds the person again after an edit of what a schedule does, or for whom. An
// empty name makes it one for the person who asks.
func (s *scheduler) readdress(ctx context.Context, c sdk.ToolCall, sc *schedule.Schedule, r schedule.Request) error {
	if r.Person == nil && (sc.To == nil || r.ChannelID == nil && r.Topic == nil) {
		return nil
	}
	person, channel := r.Person, r.ChannelID
	if sc.To != nil {
		if r.Person == nil {
			person = &sc.To.Name
		}
		if channel == nil && r.Person == nil {
			channel = &sc.To.ChannelID
		}
		sc.To, sc.ReplyTo, sc.ChannelID = nil, c.ReplyTo, named(r.ChannelID)
	}
	return s.address(ctx, c, sc, person, channel)
}

// named returns the text of an argument; empty: it was not given.
func named(argument *string) string {
	return strings.TrimSpace(*cmp.Or(argument, new(string)))
}
