package slacktest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Incoming is a message that a person writes.
type Incoming struct {
	User    string
	Channel string // empty: the direct messages with the user
	Text    string // as a person types it: @switchboard mentions the bot
	Thread  string // thread_ts
	Files   []File
	Forward *Forward // a message that the person shares
}

// Forward is a message of somebody else.
type Forward struct{ Author, Text string }

// Say writes a text of the user to the bot, and returns its ts.
func (s *Server) Say(user, text string) string { return s.Inject(Incoming{User: user, Text: text}) }

// Inject writes a person's message, and returns its ts.
func (s *Server) Inject(in Incoming) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.place(in.User, in.Channel)
	m := Message{Channel: c.id, Thread: in.Thread, User: in.User, Text: typed(in.Text), TS: s.ts()}
	m.Said = in.Text
	for _, f := range in.Files {
		m.Files = append(m.Files, *s.addFile(f))
	}
	c.messages = append(c.messages, m)
	event := s.event(c, m)
	if len(m.Files) > 0 {
		event["subtype"] = "file_share"
	}
	if in.Forward != nil {
		event["attachments"] = []any{map[string]any{
			"is_share": true, "is_msg_unfurl": true, "author_name": in.Forward.Author, "text": typed(in.Forward.Text),
			"fallback": in.Forward.Text,
		}}
	}
	s.pushEvent(event)
	return m.TS
}

// place returns where a person writes; mu is held.
func (s *Server) place(user, channel string) *conversation {
	direct := s.direct(user)
	if channel == "" || channel == direct.id {
		return direct
	}
	c := s.convs[channel]
	if c == nil {
		c = &conversation{id: channel, kind: Channel, name: strings.ToLower(channel), member: true}
		s.convs[channel] = c
	}
	return c
}

// typed encodes what a person types.
func typed(text string) string {
	return strings.ReplaceAll(escapes.Replace(text), "@"+BotName, "<@"+Bot+">")
}

// event is the event of a message; mu is held.
func (s *Server) event(c *conversation, m Message) map[string]any {
	e := s.wire(c, m, false)
	e["channel"], e["channel_type"], e["event_ts"] = c.id, c.kind, m.TS
	return e
}

// pushEvent sends an event; mu is held.
func (s *Server) pushEvent(event map[string]any) {
	s.lastID++
	s.push("events_api", map[string]any{
		"type": "event_callback", "team_id": Team, "api_app_id": "A1", "event_id": fmt.Sprintf("Ev%08d", s.lastID),
		"event_time": s.now().Unix(), "event": event,
		"authorizations": []any{map[string]any{"team_id": Team, "user_id": Bot, "is_bot": true}},
	})
}

// Edit changes a person's message.
func (s *Server) Edit(channel, ts, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.convs[channel]
	if c == nil || c.find(ts) < 0 {
		return
	}
	m := &c.messages[c.find(ts)]
	before := s.wire(c, *m, false)
	m.Text, m.Said, m.Edits, m.EditedTS = typed(text), text, m.Edits+1, s.ts()
	s.pushEvent(map[string]any{
		"type": "message", "subtype": "message_changed", "hidden": true, "channel": c.id, "channel_type": c.kind,
		"ts": m.EditedTS, "event_ts": m.EditedTS, "message": s.wire(c, *m, false), "previous_message": before,
	})
}

// Unfurl changes a person's message as Slack does when it shows a preview of a link.
func (s *Server) Unfurl(channel, ts string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.convs[channel]
	if c == nil || c.find(ts) < 0 {
		return
	}
	m := s.wire(c, c.messages[c.find(ts)], false)
	now := s.ts()
	s.pushEvent(map[string]any{
		"type": "message", "subtype": "message_changed", "hidden": true, "channel": c.id, "channel_type": c.kind,
		"ts": now, "event_ts": now, "message": m, "previous_message": m,
	})
}

// React puts an emoji, by its name, on a message.
func (s *Server) React(user, channel, ts, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	author := ""
	if c := s.convs[channel]; c != nil {
		if i := c.find(ts); i >= 0 {
			author = c.messages[i].User
		}
	}
	s.pushEvent(map[string]any{
		"type": "reaction_added", "user": user, "reaction": name, "item_user": author, "event_ts": s.ts(),
		"item": map[string]any{"type": "message", "channel": channel, "ts": ts},
	})
}

// Press presses a button of a message by its label, and reports whether there is one.
func (s *Server) Press(user, channel, ts, label string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.convs[channel]
	if c == nil || c.find(ts) < 0 {
		return false
	}
	m := c.messages[c.find(ts)]
	i := slices.IndexFunc(m.Buttons, func(b Button) bool { return b.Label == label })
	if i < 0 {
		return false
	}
	s.press(user, c, m, m.Buttons[i])
	return true
}

// PressAgain presses a button that a message had, as a person whose view is old.
func (s *Server) PressAgain(user string, m Message, b Button) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.convs[m.Channel]; c != nil {
		s.press(user, c, m, b)
	}
}

// press sends the interaction; mu is held.
func (s *Server) press(user string, c *conversation, m Message, b Button) {
	s.lastID++
	container := map[string]any{"type": "message", "message_ts": m.TS, "channel_id": c.id, "is_ephemeral": false}
	if m.Thread != "" {
		container["thread_ts"] = m.Thread
	}
	name := c.name
	if c.kind == Direct {
		name = "directmessage"
	}
	s.push("interactive", map[string]any{
		"type": "block_actions", "team": map[string]any{"id": Team, "domain": "test"}, "api_app_id": "A1",
		"user":    map[string]any{"id": user, "username": user, "name": user, "team_id": Team},
		"channel": map[string]any{"id": c.id, "name": name}, "container": container, "message": s.wire(c, m, false),
		"trigger_id": fmt.Sprintf("trigger.%d", s.lastID), "response_url": "https://hooks.slack.com/actions/T1/1/x",
		"actions": []any{map[string]any{
			"type": "button", "action_id": b.ActionID, "block_id": b.BlockID, "value": b.Value, "action_ts": s.ts(),
			"text": map[string]any{"type": "plain_text", "text": b.Label, "emoji": true},
		}},
	})
}

// Slash uses a slash command, such as "/switchboard", in a conversation (empty: the direct
// messages with the user).
func (s *Server) Slash(user, channel, command, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.place(user, channel)
	s.lastID++
	name := c.name
	if c.kind == Direct {
		name = "directmessage"
	}
	s.push("slash_commands", map[string]any{
		"token": "x", "team_id": Team, "team_domain": "test", "channel_id": c.id, "channel_name": name, "user_id": user,
		"user_name": strings.ToLower(s.users[user].Name), "command": command, "text": text, "api_app_id": "A1",
		"is_enterprise_install": "false", "response_url": "https://hooks.slack.com/commands/T1/1/x",
		"trigger_id": fmt.Sprintf("trigger.%d", s.lastID),
	})
}

// InjectEvent sends any event, such as tokens_revoked.
func (s *Server) InjectEvent(event string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var e map[string]any
	if err := json.Unmarshal([]byte(event), &e); err != nil {
		panic("slacktest: the event is not JSON: " + strconv.Quote(event))
	}
	s.pushEvent(e)
}

// SentAt returns the time of a ts.
func SentAt(ts string) time.Time { return Message{TS: ts}.Time() }
