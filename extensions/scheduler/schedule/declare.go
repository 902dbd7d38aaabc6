package schedule

import (
	"encoding/json"
	"fmt"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/topic"
)

// DeclaredID returns the id of a schedule that an extension's manifest declares.
func DeclaredID(extension, name string) string { return extension + "." + name }

// Declare returns the schedule of a manifest's declaration. It may publish to
// the extension's own topics and to those of the system. old is the stored
// schedule, or nil. Its state and counts are kept; its next time is kept too,
// unless the timing has changed: then an interval counts from now.
func Declare(extension string, d contract.DeclaredSchedule, old *Schedule, env Env) (Schedule, error) {
	if !systemTopic(d.Topic) && topic.Owner(d.Topic) != extension {
		return Schedule{}, fmt.Errorf("schedule %s of %s: topic %q is neither the extension's nor the system's",
			d.Name, extension, d.Topic)
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
			return Schedule{}, fmt.Errorf("schedule %s of %s: encode payload: %w", d.Name, extension, err)
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
	if old == nil {
		return s, nil
	}
	kept := *old
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
