package schedule

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/words"
)

// ReminderMark begins the text of a reminder, so that people know what it is, in any
// language. A payload with "verbatim": true leaves it out.
const ReminderMark = "⏰ "

// FirePayload returns the payload of the event that a fire publishes. The text
// says if it is late; for topics without a text, the field "schedule" says so.
func (s Schedule) FirePayload(d Decision, now time.Time) (json.RawMessage, error) {
	if s.To != nil {
		s.Language = s.To.Language // of those who read it
	}
	text := s.Message
	if d.Late {
		text += " " + s.lateNote(d, now)
	}
	custom := map[string]any{}
	if len(s.Payload) > 0 {
		if err := json.Unmarshal(s.Payload, &custom); err != nil {
			return nil, fmt.Errorf("decode payload of schedule %s: %w", s.ID, err)
		}
	}
	agent, _ := custom["agent_id"].(string)
	job := ""
	if s.Kind == Recurring {
		job = s.ID // all runs of a schedule share a session
	}
	var payload any
	switch s.Topic {
	case TopicNotify:
		notice := contract.UserNotify{Text: text, ChannelID: s.ChannelID, ReplyTo: s.ReplyTo, Attachments: s.Attachments,
			Asked: s.Owner == "" && s.To == nil}
		if s.To != nil {
			text = words.Say(s.To.Language, "From %s: %s", s.To.From, text)
			notice.Text = text
		}
		if verbatim, _ := custom["verbatim"].(bool); !verbatim {
			if !strings.HasPrefix(text, ReminderMark) {
				notice.Text = ReminderMark + text
			}
			if s.Owner == "" && s.To == nil { // another person cannot answer for the one who set it
				notice.Actions = s.actions()
			}
		}
		payload = notice
	case TopicTask:
		if s.To != nil {
			text += fmt.Sprintf("\n\nSend the result with send_to_channel to the person %q on the channel %q.",
				s.To.Name, s.To.ChannelID)
		}
		payload = contract.AgentTask{Prompt: text, ChannelID: s.ChannelID, ReplyTo: s.ReplyTo, AgentID: agent,
			Name: job, Principal: s.Principal}
	case TopicBackground:
		payload = contract.AgentBackground{Prompt: text, AgentID: agent, Name: job, Principal: s.Principal}
	default:
		if _, ok := custom["text"]; !ok && s.Message != "" {
			custom["text"] = s.Message
		}
		if s.ChannelID != "" {
			custom["channel_id"] = s.ChannelID
		}
		if s.ReplyTo != "" {
			custom["reply_to"] = s.ReplyTo
		}
		if _, ok := custom["schedule"]; !ok {
			custom["schedule"] = map[string]any{"id": s.ID, "due": d.Due.UTC(), "late": d.Late, "skipped": d.Skipped}
		}
		payload = custom
	}
	data, err := json.Marshal(payload)
	if err != nil {
		return nil, fmt.Errorf("encode payload of schedule %s: %w", s.ID, err)
	}
	return data, nil
}
