package scheduler

import (
	"context"
	"fmt"
	"strings"

	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/extensions/scheduler/schedule"
	"github.com/switchboard-run/switchboard/sdk"
)

// checkDestination refuses a schedule whose message no channel can deliver. The
// warnings say if the channel is not ready now.
func (s *scheduler) checkDestination(ctx context.Context, sc schedule.Schedule) (warnings []string, err error) {
	needsChannel := sc.Topic == schedule.TopicNotify || sc.Topic == schedule.TopicTask
	if sc.ChannelID == "" && (!needsChannel || sc.ReplyTo != "") {
		return nil, nil
	}
	channels, err := s.k.Channels(ctx)
	if err != nil {
		return nil, fmt.Errorf("check destination: %w", err)
	}
	if sc.ChannelID == "" {
		for _, c := range channels {
			if c.GetReadiness().GetState() != sdk.Unconfigured {
				return nil, nil
			}
		}
		return nil, fmt.Errorf("check destination: %s", available(channels))
	}
	for _, c := range channels {
		if c.GetId() != sc.ChannelID {
			continue
		}
		detail := c.GetReadiness().GetDetail()
		switch c.GetReadiness().GetState() {
		case sdk.Unconfigured:
			return nil, fmt.Errorf("channel %s is not set up (%s): %s", sc.ChannelID, detail, available(channels))
		case sdk.Offline, sdk.Degraded:
			warning := fmt.Sprintf("channel %s is not ready (%s)", sc.ChannelID, detail)
			return []string{strings.TrimSuffix(warning, " ()")}, nil
		}
		return nil, nil
	}
	return nil, fmt.Errorf("there is no channel %q: %s", sc.ChannelID, available(channels))
}

// available lists the configured channels for an error.
func available(channels []*kernelv1.Channel) string {
	var names []string
	for _, c := range channels {
		if c.GetReadiness().GetState() != sdk.Unconfigured {
			names = append(names, fmt.Sprintf("%s (%s)", c.GetId(), c.GetName()))
		}
	}
	if len(names) == 0 {
		return "no channel is set up"
	}
	return "use one of " + strings.Join(names, ", ") + ", or omit channel_id to use this conversation"
}

// destination describes where a schedule's message goes, for the conversation of
// a call.
func destination(sc schedule.Schedule, c sdk.ToolCall) string {
	here := sc.ReplyTo != "" && sc.ReplyTo == c.ReplyTo
	switch {
	case sc.To != nil:
		return sc.To.Text
	case sc.Topic != schedule.TopicNotify && sc.Topic != schedule.TopicTask:
		return words.Sprintf("event %s", sc.Topic)
	case sc.ChannelID != "" && here && sc.ChannelID == c.Channel:
		return words.Sprintf("this conversation on %s", sc.ChannelID)
	case sc.ChannelID != "":
		return sc.ChannelID
	case here && c.Channel != "":
		return words.Sprintf("this conversation on %s", c.Channel)
	case here:
		return words.Sprintf("this conversation")
	case sc.Principal.Group != "":
		return words.Sprintf("the group that asked for it")
	case sc.ReplyTo != "":
		return words.Sprintf("the conversation that asked for it")
	default:
		return words.Sprintf("the default channel")
	}
}
