package slacktest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Kinds of conversations, as the events of messages name them.
const (
	Direct       = "im"
	Channel      = "channel"
	Private      = "group"
	DirectGroup  = "mpim"
	maxText      = 40_000 // characters that are kept of a new message
	maxEdit      = 4_000  // characters of an edit
	defaultLimit = 100
)

// Message is a message, written by a person or by the bot.
type Message struct {
	TS       string
	Channel  string
	Thread   string // thread_ts; empty: it is not in a thread
	User     string
	ByBot    bool
	Text     string // as sent: fallback text of blocks
	Said     string // what people see: the text of the blocks, or Text without its escapes
	Blocks   json.RawMessage
	Buttons  []Button
	Files    []File
	Edits    int
	Event    string // of the metadata: event_type
	Metadata map[string]any
	EditedTS string
}

// Button is a button below a message.
type Button struct{ ActionID, BlockID, Label, Value string }

// conversation is a channel, or a direct message. Its fields are guarded by Server.mu.
type conversation struct {
	id, kind, name string
	user           string // of a direct message
	member         bool   // the bot is in it
	archived       bool
	messages       []Message
	deleted        []Message
}

func (c *conversation) find(ts string) int {
	return slices.IndexFunc(c.messages, func(m Message) bool { return m.TS == ts })
}

// DirectID returns the id of the direct messages with a user.
func DirectID(user string) string { return "D" + strings.TrimPrefix(user, "U") }

// AddUser adds or changes a user.
func (s *Server) AddUser(u User) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users[u.ID] = u
}

// AddConversation adds a conversation of a kind that the bot is in.
func (s *Server) AddConversation(id, kind, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.convs[id] = &conversation{id: id, kind: kind, name: name, member: true}
}

// Leave removes the bot from a conversation; Join adds it again.
func (s *Server) Leave(id string) { s.change(id, func(c *conversation) { c.member = false }) }

// Join adds the bot to a conversation.
func (s *Server) Join(id string) { s.change(id, func(c *conversation) { c.member = true }) }

// Archive archives a conversation.
func (s *Server) Archive(id string) { s.change(id, func(c *conversation) { c.archived = true }) }

func (s *Server) change(id string, f func(*conversation)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.convs[id]; c != nil {
		f(c)
	}
}

// direct returns the direct messages with a user; mu is held.
func (s *Server) direct(user string) *conversation {
	if _, ok := s.users[user]; !ok {
		s.users[user] = User{ID: user, Name: user}
	}
	id := DirectID(user)
	c := s.convs[id]
	if c == nil {
		c = &conversation{id: id, kind: Direct, user: user, member: true}
		s.convs[id] = c
	}
	return c
}

// ts returns a new time of a message; mu is held.
func (s *Server) ts() string {
	s.lastTS = max(s.lastTS+1, s.now().UnixMicro())
	return fmt.Sprintf("%d.%06d", s.lastTS/1e6, s.lastTS%1e6)
}

// writable returns a conversation that the bot may write to; mu is held.
func (s *Server) writable(id string) (*conversation, *refusal) {
	if strings.HasPrefix(id, "U") && s.users[id].ID != "" {
		return s.direct(id), nil
	}
	switch c := s.convs[id]; {
	case c == nil:
		return nil, refuse("channel_not_found")
	case c.archived:
		return nil, refuse("is_archived")
	case !c.member:
		return nil, refuse("not_in_channel")
	default:
		return c, nil
	}
}

// content reads text, blocks and metadata of a call into a message.
func content(p url.Values, m *Message) *refusal {
	m.Text = p.Get("text")
	if raw := p.Get("blocks"); raw != "" {
		said, buttons, problems := checkBlocks([]byte(raw))
		switch {
		case len(problems) > 0 && problems[0] == tooLong:
			return refuse(tooLong)
		case len(problems) > 0:
			return &refusal{code: "invalid_blocks", messages: problems}
		}
		m.Blocks, m.Buttons, m.Said = json.RawMessage(raw), buttons, said
		if raw == "[]" {
			m.Blocks = nil
		}
	}
	if len(m.Blocks) == 0 {
		m.Said = unescape(m.Text)
	}
	if strings.TrimSpace(m.Text) == "" && len(m.Blocks) == 0 {
		return refuse("no_text")
	}
	if raw := p.Get("metadata"); raw != "" {
		var meta struct {
			Type    string         `json:"event_type"`
			Payload map[string]any `json:"event_payload"`
		}
		if err := json.Unmarshal([]byte(raw), &meta); err != nil || meta.Type == "" || meta.Payload == nil {
			return refuse("invalid_metadata_format")
		}
		m.Event, m.Metadata = meta.Type, meta.Payload
	}
	return nil
}

func (s *Server) postMessage(p url.Values) (any, *refusal) {
	s.mu.Lock()
	defer s.tell()
	c, bad := s.writable(p.Get("channel"))
	if bad != nil {
		return nil, bad
	}
	m := Message{Channel: c.id, Thread: p.Get("thread_ts"), User: Bot, ByBot: true}
	if bad := content(p, &m); bad != nil {
		return nil, bad
	}
	if m.Thread != "" && c.find(m.Thread) < 0 {
		return nil, refuse("thread_not_found")
	}
	if r := []rune(m.Text); len(r) > maxText {
		m.Text = string(r[:maxText])
	}
	m.TS = s.ts()
	c.messages = append(c.messages, m)
	s.accept(m)
	return map[string]any{"channel": c.id, "ts": m.TS, "message": s.wire(c, m, false)}, nil
}

// accept notes a message of the bot; mu is held.
func (s *Server) accept(m Message) {
	if m.Edits == 0 {
		s.accepted++
	}
	s.untold = append(s.untold, m)
	s.move()
}

// tell releases mu and reports the messages that were accepted under it.
func (s *Server) tell() {
	all := s.untold
	s.untold = nil
	s.mu.Unlock()
	for _, m := range all {
		if s.onAccept != nil {
			s.onAccept(m)
		}
	}
}

func (s *Server) updateMessage(p url.Values) (any, *refusal) {
	s.mu.Lock()
	defer s.tell()
	c, bad := s.writable(p.Get("channel"))
	if bad != nil {
		return nil, bad
	}
	i := c.find(p.Get("ts"))
	switch {
	case i < 0:
		return nil, refuse("message_not_found")
	case !c.messages[i].ByBot:
		return nil, refuse("cant_update_message")
	case len([]rune(p.Get("text"))) > maxEdit:
		return nil, refuse("msg_too_long")
	}
	m := c.messages[i]
	if bad := content(p, &m); bad != nil {
		return nil, bad
	}
	if p.Get("blocks") == "[]" {
		m.Buttons = nil
	}
	m.Edits++
	m.EditedTS = s.ts()
	c.messages[i] = m
	s.accept(m)
	return map[string]any{"channel": c.id, "ts": m.TS, "text": m.Text, "message": s.wire(c, m, false)}, nil
}

// Ephemeral is a message that one person sees.
type Ephemeral struct{ Channel, User, Text string }

func (s *Server) postEphemeral(p url.Values) (any, *refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, bad := s.writable(p.Get("channel"))
	if bad != nil {
		return nil, bad
	}
	var m Message
	if bad := content(p, &m); bad != nil {
		return nil, bad
	}
	user := p.Get("user")
	if s.users[user].ID == "" {
		return nil, refuse("user_not_in_channel")
	}
	s.ephemeral = append(s.ephemeral, Ephemeral{Channel: c.id, User: user, Text: m.Said})
	s.move()
	return map[string]any{"message_ts": s.ts()}, nil
}

// Ephemeral returns the messages that only one person sees, in order.
func (s *Server) Ephemeral() []Ephemeral {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.ephemeral)
}

func (s *Server) deleteMessage(p url.Values) (any, *refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, bad := s.writable(p.Get("channel"))
	if bad != nil {
		return nil, bad
	}
	i := c.find(p.Get("ts"))
	switch {
	case i < 0:
		return nil, refuse("message_not_found")
	case !c.messages[i].ByBot:
		return nil, refuse("cant_delete_message")
	}
	c.deleted = append(c.deleted, c.messages[i])
	c.messages = slices.Delete(c.messages, i, i+1)
	s.move()
	return map[string]any{"channel": c.id, "ts": p.Get("ts")}, nil
}

func (s *Server) openConversation(p url.Values) (any, *refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	user := p.Get("users")
	if s.users[user].ID == "" {
		return nil, refuse("user_not_found")
	}
	return map[string]any{"channel": map[string]any{"id": s.direct(user).id}}, nil
}

func (s *Server) conversationInfo(p url.Values) (any, *refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.convs[p.Get("channel")]
	if c == nil {
		return nil, refuse("channel_not_found")
	}
	return map[string]any{"channel": map[string]any{
		"id": c.id, "name": c.name, "is_im": c.kind == Direct, "is_mpim": c.kind == DirectGroup,
		"is_channel": c.kind == Channel, "is_group": c.kind == Private, "user": c.user, "is_member": c.member,
		"is_archived": c.archived,
	}}, nil
}

// conversations lists those that the bot is in.
func (s *Server) conversations(p url.Values) (any, *refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	types := map[string]string{Direct: "im", DirectGroup: "mpim", Channel: "public_channel", Private: "private_channel"}
	all := []any{}
	for _, id := range slices.Sorted(maps.Keys(s.convs)) {
		c := s.convs[id]
		if c.member && !c.archived && slices.Contains(strings.Split(p.Get("types"), ","), types[c.kind]) {
			all = append(all, map[string]any{"id": c.id, "name": c.name, "is_im": c.kind == Direct, "user": c.user})
		}
	}
	return map[string]any{"channels": all, "response_metadata": map[string]any{"next_cursor": ""}}, nil
}

func (s *Server) userInfo(p url.Values) (any, *refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, ok := s.users[p.Get("user")]
	if !ok {
		return nil, refuse("user_not_found")
	}
	user := map[string]any{
		"id": u.ID, "team_id": Team, "name": strings.ToLower(u.Name), "real_name": u.Name,
		"profile": map[string]any{"display_name": u.Name, "real_name": u.Name}, "is_bot": false,
	}
	if p.Get("include_locale") == "true" {
		user["locale"] = u.Locale
	}
	return map[string]any{"user": user}, nil
}

// page returns the messages of a call's range, newest first, and the cursor of the next
// page.
func page(p url.Values, all []Message) (found []Message, more bool, next string, bad *refusal) {
	limit, err := strconv.Atoi(p.Get("limit"))
	if p.Get("limit") == "" {
		limit, err = defaultLimit, nil
	}
	if err != nil || limit < 1 || limit > 999 {
		return nil, false, "", refuse("invalid_limit")
	}
	skip := 0
	if cursor := p.Get("cursor"); cursor != "" {
		if skip, err = strconv.Atoi(cursor); err != nil {
			return nil, false, "", refuse("invalid_cursor")
		}
	}
	oldest, latest, inclusive := p.Get("oldest"), p.Get("latest"), p.Get("inclusive") == "1"
	for _, m := range slices.Backward(all) {
		if oldest != "" && (seconds(m.TS) < seconds(oldest) || m.TS == oldest && !inclusive) ||
			latest != "" && (seconds(m.TS) > seconds(latest) || m.TS == latest && !inclusive) {
			continue
		}
		if skip--; skip >= 0 {
			continue
		}
		if len(found) == limit {
			start, _ := strconv.Atoi(p.Get("cursor"))
			return found, true, strconv.Itoa(start + limit), nil
		}
		found = append(found, m)
	}
	return found, false, "", nil
}

func seconds(ts string) float64 {
	f, _ := strconv.ParseFloat(ts, 64)
	return f
}

func (s *Server) pageOf(c *conversation, p url.Values, all []Message) (any, *refusal) {
	found, more, next, bad := page(p, all)
	if bad != nil {
		return nil, bad
	}
	messages := make([]any, 0, len(found))
	for _, m := range found {
		messages = append(messages, s.wire(c, m, p.Get("include_all_metadata") == "1"))
	}
	return map[string]any{
		"messages": messages, "has_more": more, "response_metadata": map[string]any{"next_cursor": next},
	}, nil
}

func (s *Server) readable(id string) (*conversation, *refusal) {
	c := s.convs[id]
	if c == nil {
		return nil, refuse("channel_not_found")
	}
	if !c.member {
		return nil, refuse("not_in_channel")
	}
	return c, nil
}

// history has the messages outside of threads, and the first one of each thread.
func (s *Server) history(p url.Values) (any, *refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, bad := s.readable(p.Get("channel"))
	if bad != nil {
		return nil, bad
	}
	all := slices.DeleteFunc(slices.Clone(c.messages), func(m Message) bool { return m.Thread != "" && m.Thread != m.TS })
	return s.pageOf(c, p, all)
}

// replies has the messages of a thread, its first one first. Asked for a reply it has
// this alone.
func (s *Server) replies(p url.Values) (any, *refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, bad := s.readable(p.Get("channel"))
	if bad != nil {
		return nil, bad
	}
	i := c.find(p.Get("ts"))
	if i < 0 {
		return nil, refuse("thread_not_found")
	}
	root := c.messages[i]
	all := []Message{root}
	if root.Thread == "" || root.Thread == root.TS {
		for _, m := range c.messages {
			if m.Thread == root.TS && m.TS != root.TS {
				all = append(all, m)
			}
		}
	}
	slices.Reverse(all) // page reads backward
	return s.pageOf(c, p, all)
}

// wire encodes a message as Slack does; mu is held.
func (s *Server) wire(c *conversation, m Message, metadata bool) map[string]any {
	w := map[string]any{"type": "message", "user": m.User, "text": m.Text, "ts": m.TS, "team": Team}
	if m.ByBot {
		w["bot_id"], w["app_id"] = "B00000001", "A1"
	}
	if len(m.Blocks) > 0 {
		w["blocks"] = m.Blocks
	}
	thread := m.Thread
	for _, o := range c.messages {
		if o.Thread == m.TS {
			thread = m.TS
			w["latest_reply"] = o.TS
		}
	}
	if thread != "" {
		w["thread_ts"] = thread
		if i := c.find(thread); i >= 0 && thread != m.TS {
			w["parent_user_id"] = c.messages[i].User
		}
	}
	if m.Edits > 0 {
		w["edited"] = map[string]any{"user": m.User, "ts": m.EditedTS}
	}
	if len(m.Files) > 0 {
		var files []any
		for i := range m.Files {
			files = append(files, s.fileObject(&m.Files[i]))
		}
		w["files"] = files
	}
	if metadata && m.Event != "" {
		w["metadata"] = map[string]any{"event_type": m.Event, "event_payload": m.Metadata}
	}
	return w
}

// Time returns the time of a message.
func (m Message) Time() time.Time { return time.UnixMicro(int64(seconds(m.TS) * 1e6)) }

var escapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

func unescape(text string) string {
	return strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&").Replace(text)
}

// Post posts blocks as the bot, without a request, and returns what is wrong with them.
func (s *Server) Post(channel, text string, blocks any) (problems string, err error) {
	raw, err := json.Marshal(blocks)
	if err != nil {
		return "", err
	}
	p := url.Values{"channel": {channel}, "text": {text}, "blocks": {string(raw)}}
	if len([]rune(text)) > maxEdit {
		return "", fmt.Errorf("a text of %d characters could not be edited", len([]rune(text)))
	}
	if _, bad := s.postMessage(p); bad != nil {
		return strings.Join(bad.messages, "\n"), fmt.Errorf("refused: %s", bad.code)
	}
	return "", nil
}
