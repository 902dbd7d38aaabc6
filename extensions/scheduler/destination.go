package scheduler

import (
	"context"
	"fmt"
	"strings"

	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/extensions/scheduler/schedule"
	"github.com/switchboard-run/switchboard/sdk"
)

// checkDestination refuses a schedule whose event could reach nobody. The notes
// say what stands in the way for the time being.
func (s *scheduler) checkDestination(ctx context.Context, sc schedule.Schedule) ([]string, error) {
	reaches := sc.Topic == schedule.TopicNotify || sc.Topic == schedule.TopicTask
	if sc.ChannelID == "" && (!reaches || sc.ReplyTo != "") {
		return nil, nil
	}
	channels, err := s.k.Channels(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the channels to check the destination: %w", err)
	}
	if sc.ChannelID == "" {
		for _, c := range channels {
			if c.GetReadiness().GetState() != sdk.Unconfigured {
				return nil, nil
			}
		}
		return nil, fmt.Errorf("there is no channel that could deliver it: %s", known(channels))
	}
	for _, c := range channels {
		if c.GetId() != sc.ChannelID {
			continue
		}
		detail := c.GetReadiness().GetDetail()
		switch c.GetReadiness().GetState() {
		case sdk.Unconfigured:
			return nil, fmt.Errorf("channel %s is not configured and cannot deliver anything (%s): %s", sc.ChannelID, detail, known(channels))
		case sdk.Offline, sdk.Degraded:
			return []string{strings.TrimSuffix(fmt.Sprintf("%s is not ready now (%s)", sc.ChannelID, detail), " ()")}, nil
		}
		return nil, nil
	}
	return nil, fmt.Errorf("there is no channel %q: %s", sc.ChannelID, known(channels))
}

// known names the channels that could be meant.
func known(channels []*kernelv1.Channel) string {
	var names []string
	for _, c := range channels {
		if c.GetReadiness().GetState() != sdk.Unconfigured {
			names = append(names, fmt.Sprintf("%s (%s)", c.GetId(), c.GetName()))
		}
	}
	if len(names) == 0 {
		return "no channel is configured"
	}
	return "known channels are " + strings.Join(names, ", ") + "; leave channel_id out for the conversation that asks"
}

// destination says in words where a schedule goes, as seen from a conversation.
func destination(sc schedule.Schedule, c sdk.ToolCall) string {
	here := sc.ReplyTo != "" && sc.ReplyTo == c.ReplyTo
	switch {
	case sc.Topic != schedule.TopicNotify && sc.Topic != schedule.TopicTask:
		return "event " + sc.Topic
	case sc.ChannelID != "" && here && sc.ChannelID == c.Channel:
		return "this conversation on " + sc.ChannelID
	case sc.ChannelID != "":
		return sc.ChannelID
	case here && c.Channel != "":
		return "this conversation on " + c.Channel
	case here:
		return "this conversation"
	case sc.ReplyTo != "":
		return "the conversation that asked for it"
	default:
		return "the default channel"
	}
}
