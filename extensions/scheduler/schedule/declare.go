package schedule

import (
	"encoding/json"
	"fmt"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/topic"
)

// DeclaredID is the id of a schedule that an extension's manifest declares.
func DeclaredID(extension, name string) string { return extension + "." + name }

// Declare makes a schedule of a manifest's declaration. It may publish to the
// owner's own topics and to the system's. was is what is stored for it, or nil:
// its state and its counts are kept, and its next time too unless the timing
// has changed: an interval then counts from now.
func Declare(extension string, d contract.DeclaredSchedule, was *Schedule, env Env) (Schedule, error) {
	if !systemTopic(d.Topic) && topic.Owner(d.Topic) != extension {
		return Schedule{}, fmt.Errorf("schedule %s of %s: topic %q belongs to neither the extension nor the system", d.Name, extension, d.Topic)
	}
	message := fmt.Sprintf("%s of %s", d.Name, extension)
	request := Request{Message: &message, Cron: &d.Cron, Topic: &d.Topic}
	if d.Every != 0 {
		every := float64(d.Every)
		request.Cron, request.EverySeconds = nil, &every
	}
	if d.Timezone != "" {
		request.Timezone = &d.Timezone
	}
	if len(d.Payload) > 0 {
		payload, err := json.Marshal(d.Payload)
		if err != nil {
			return Schedule{}, fmt.Errorf("payload of schedule %s of %s: %w", d.Name, extension, err)
		}
		request.Payload = payload
		if text, ok := firstText(d.Payload, "text", "prompt", "message"); ok {
			request.Message = &text
		}
	}
	s, _, err := New(Recurring, request, env)
	if err != nil {
		return Schedule{}, fmt.Errorf("schedule %s of %s: %w", d.Name, extension, err)
	}
	s.ID, s.Owner, s.Name, s.CreatedBy = DeclaredID(extension, d.Name), extension, d.Name, extension
	if was == nil {
		return s, nil
	}
	kept := *was
	kept.Message, kept.Topic, kept.Payload, kept.ChannelID = s.Message, s.Topic, s.Payload, s.ChannelID
	if kept.Cron == s.Cron && kept.EverySeconds == s.EverySeconds && kept.Timezone == s.Timezone && !kept.Finished() {
		return kept, nil
	}
	kept.Cron, kept.EverySeconds, kept.Timezone, kept.Anchor = s.Cron, s.EverySeconds, s.Timezone, s.Anchor
	kept.Revision, kept.Problem, kept.FinishedAt = kept.Revision+1, "", nil
	if kept.State != Paused {
		kept.State, kept.Next = Active, s.Next
	}
	return kept, nil
}

func firstText(fields map[string]any, names ...string) (string, bool) {
	for _, name := range names {
		if text, ok := fields[name].(string); ok && text != "" {
			return text, true
		}
	}
	return "", false
}
