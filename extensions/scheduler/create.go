package scheduler

import (
	"context"
	"errors"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/scheduler/schedule"
	"github.com/switchboard-run/switchboard/sdk"
)

func (s *scheduler) scheduleOnce(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
	return s.create(ctx, c, schedule.Once, "")
}

func (s *scheduler) scheduleRecurring(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
	return s.create(ctx, c, schedule.Recurring, "")
}

// create creates a schedule. With a key, none with the key may exist.
func (s *scheduler) create(ctx context.Context, c sdk.ToolCall, kind, key string) (sdk.ToolResult, error) {
	var r schedule.Request
	if err := c.Decode(&r); err != nil {
		return sdk.ToolResult{}, err
	}
	sc, notes, err := schedule.New(kind, r, s.env(c))
	if err != nil {
		return sdk.ToolResult{}, err
	}
	if sc.Attachments, err = s.files(ctx, sc.Topic, r.Attachments); err != nil {
		return sdk.ToolResult{}, err
	}
	sc.ReplyTo, sc.CreatedBy, sc.Principal, sc.Language = c.ReplyTo, c.Sender, c.Principal, c.Language
	if err := s.address(ctx, c, &sc, r.Person, r.ChannelID); err != nil {
		return sdk.ToolResult{}, err
	}
	warnings, err := s.checkDestination(ctx, sc)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	notes = append(append(notes, zoneNote(r, sc)...), warnings...)
	if err := s.ready(ctx); err != nil {
		return sdk.ToolResult{}, err
	}
	id, counted := s.newID()
	sc.ID, sc.Key = id, key
	return s.changed("scheduled", sc, c, notes, withKey(sc, []sdk.Effect{counted, s.write(sc, 0)})...)
}

// files returns the files of the conversation that references name, for a reminder.
func (s *scheduler) files(
	ctx context.Context, topic string, references []string,
) (all []contract.Attachment, err error) {
	if len(references) > 0 && topic != schedule.TopicNotify {
		return nil, errors.New("attachments go with a reminder: leave out the topic")
	}
	for _, reference := range references {
		a, err := contract.ParseReference(reference)
		if err != nil {
			return nil, err
		}
		b, err := s.k.FindBlob(ctx, a.InSession())
		if err != nil {
			return nil, err
		}
		a.Blob, a.Size = b.Hash, b.Size
		all = append(all, a)
	}
	return all, nil
}
