package discordtest

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Limits of messages.
const (
	maxText     = 2000 // characters
	maxFiles    = 10
	maxFileSize = 10 << 20
	maxNonce    = 25
	nonceTime   = 5 * time.Minute
)

// apiError is a refusal.
type apiError struct {
	status  int
	code    int
	message string
	errors  any
	retry   float64 // seconds, of status 429
	global  bool
}

func refuse(status, code int, format string, args ...any) *apiError {
	return &apiError{status: status, code: code, message: fmt.Sprintf(format, args...)}
}

func invalid(field, what string) *apiError {
	e := refuse(http.StatusBadRequest, 50035, "Invalid Form Body")
	e.errors = map[string]any{field: map[string]any{"_errors": []any{map[string]any{"message": what}}}}
	return e
}

var (
	unknownChannel = refuse(http.StatusNotFound, 10003, "Unknown Channel")
	unknownMessage = refuse(http.StatusNotFound, 10008, "Unknown Message")
)

// call is a request that arrived.
type call struct {
	name    string
	channel string
	ids     []string
	method  string
	path    string
	r       *http.Request
	body    []byte
	files   []File

	accepted []Message // that the bot has written or changed
}

var pathPattern = regexp.MustCompile(`/[0-9]{3,}`)

// names are the names of requests by method and path, whose ids are stars.
var names = map[string]string{
	"GET /users/@me":                  "me",
	"GET /users/*":                    "getUser",
	"POST /users/@me/channels":        "openDM",
	"GET /gateway/bot":                "gateway",
	"GET /applications/@me":           "application",
	"PUT /applications/*/commands":    "commands",
	"GET /channels/*":                 "getChannel",
	"GET /channels/*/messages":        "history",
	"GET /channels/*/messages/*":      "getMessage",
	"POST /channels/*/messages":       "createMessage",
	"PATCH /channels/*/messages/*":    "editMessage",
	"DELETE /channels/*/messages/*":   "deleteMessage",
	"POST /channels/*/typing":         "typing",
	"POST /interactions/*/?/callback": "callback",
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, isAPI := strings.CutPrefix(r.URL.Path, "/api/v10")
	if strings.HasPrefix(r.URL.Path, "/gateway") {
		s.serveGateway(w, r)
		return
	}
	c := &call{method: r.Method, path: path, r: r}
	c.parse()
	if !isAPI || strings.HasPrefix(path, "/stickers/") {
		c.name, c.channel = "file", ""
	}
	read := c.read()
	if r.Context().Err() != nil {
		return
	}
	s.mu.Lock()
	s.calls[c.name]++
	fault, faulty := s.takeFault(c)
	s.change()
	s.mu.Unlock()
	if faulty && fault.instead() {
		s.mu.Lock()
		s.refused = append(s.refused, Refusal{c.name, c.channel, fault.Status, fault.Code, "scripted"})
		s.change()
		s.mu.Unlock()
		fault.happen(w, r)
		return
	}
	if c.name == "file" {
		s.download(w, r, fault)
		return
	}
	var result any
	refusal := read
	var head http.Header
	if refusal == nil {
		result, refusal, head = s.answer(c)
	}
	for _, m := range c.accepted {
		if s.onAccept != nil {
			s.onAccept(m)
		}
	}
	if refusal != nil {
		s.mu.Lock()
		s.refused = append(s.refused, Refusal{c.name, c.channel, refusal.status, refusal.code, refusal.message})
		s.change()
		s.mu.Unlock()
	}
	status, body := encode(result, refusal)
	maps.Copy(w.Header(), head)
	if faulty && !fault.after(w, r, body) {
		return
	}
	write(w, status, body, refusal)
}

// parse names a request and finds its ids.
func (c *call) parse() {
	path := c.path
	if rest, ok := strings.CutPrefix(path, "/interactions/"); ok {
		parts := strings.Split(rest, "/")
		if len(parts) == 3 {
			c.ids, path = parts[:2], "/interactions/*/?/"+parts[2]
		}
	} else {
		for _, id := range pathPattern.FindAllString(path, -1) {
			c.ids = append(c.ids, id[1:])
		}
		path = pathPattern.ReplaceAllString(path, "/*")
	}
	c.name = names[c.method+" "+path]
	if strings.HasPrefix(path, "/channels/*") && len(c.ids) > 0 {
		c.channel = c.ids[0]
	}
}

// read reads the body with its files.
func (c *call) read() *apiError {
	if !strings.HasPrefix(c.r.Header.Get("Content-Type"), "multipart/form-data") {
		c.body, _ = io.ReadAll(io.LimitReader(c.r.Body, 1<<20))
		return nil
	}
	form, err := c.r.MultipartReader()
	if err != nil {
		return invalid("form", err.Error())
	}
	for {
		part, err := form.NextPart()
		if err == io.EOF { //nolint:errorlint // returned as it is
			return nil
		}
		if err != nil {
			return invalid("form", err.Error())
		}
		data, err := io.ReadAll(io.LimitReader(part, maxFileSize+1))
		if err != nil {
			return invalid("form", err.Error())
		}
		switch name := part.FormName(); {
		case name == "payload_json":
			c.body = data
		case strings.HasPrefix(name, "files["):
			if len(data) > maxFileSize {
				return refuse(http.StatusRequestEntityTooLarge, 40005, "Request entity too large")
			}
			c.files = append(c.files, File{Name: part.FileName(), MIME: part.Header.Get("Content-Type"), Data: data})
		}
	}
}

// answer processes a request. Head are the limits of its route.
func (s *Server) answer(c *call) (any, *apiError, http.Header) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.change()
	if c.name == "" {
		return nil, refuse(http.StatusNotFound, 0, "404: Not Found"), nil
	}
	if !strings.HasPrefix(c.r.UserAgent(), "DiscordBot (") {
		return nil, refuse(http.StatusForbidden, 40333, "internal network error"), nil
	}
	if c.name == "callback" {
		return nil, s.callback(c), nil
	}
	if c.r.Header.Get("Authorization") != "Bot "+s.token {
		return nil, refuse(http.StatusUnauthorized, 0, "401: Unauthorized"), nil
	}
	head, refusal := s.admit(c)
	if refusal != nil {
		return nil, refusal, head
	}
	result, refusal := s.process(c)
	return result, refusal, head
}

// process processes an admitted request; mu is held.
func (s *Server) process(c *call) (any, *apiError) {
	switch c.name {
	case "me":
		return s.renderUser(BotID), nil
	case "getUser":
		if _, ok := s.users[c.ids[0]]; !ok {
			return nil, refuse(http.StatusNotFound, 10013, "Unknown User")
		}
		return s.renderUser(c.ids[0]), nil
	case "application":
		flags := 0
		if s.content {
			flags = 1 << 19
		}
		return map[string]any{"id": BotID, "name": "Switchboard", "flags": flags}, nil
	case "gateway":
		return map[string]any{"url": "ws://" + s.port.Addr + "/gateway", "shards": 1, "session_start_limit": map[string]any{
			"total": 1000, "remaining": s.startsLeft, "reset_after": 1000, "max_concurrency": 1}}, nil
	case "openDM":
		var d struct {
			Recipient string `json:"recipient_id"`
		}
		if json.Unmarshal(c.body, &d) != nil || d.Recipient == "" {
			return nil, refuse(http.StatusBadRequest, 50033, "Invalid Recipient(s)")
		}
		one := s.private(d.Recipient)
		return map[string]any{"id": one.ID, "type": 1, "recipients": []any{s.renderUser(d.Recipient)}}, nil
	case "commands":
		return s.setCommands(c)
	}
	channel := s.channels[c.channel]
	if channel == nil {
		return nil, unknownChannel
	}
	switch c.name {
	case "getChannel":
		return map[string]any{"id": channel.ID, "type": channel.Type, "name": channel.Name,
			"parent_id": orNull(channel.Parent), "guild_id": orNull(channel.Guild)}, nil
	case "typing":
		if channel.refusal != nil {
			return nil, channel.refusal
		}
		channel.typing++
		return nil, nil //nolint:nilnil // no content
	case "history":
		return s.history(c, channel)
	case "createMessage":
		return s.create(c, channel)
	}
	m := channel.find(c.ids[1])
	switch {
	case m == nil:
		return nil, unknownMessage
	case c.name == "getMessage":
		s.renew(m)
		return s.render(channel, m, false), nil
	case !m.ByBot:
		return nil, refuse(http.StatusForbidden, 50005, "Cannot edit a message authored by another user")
	case c.name == "deleteMessage":
		channel.deleted = append(channel.deleted, copyOf(m))
		channel.messages = slices.DeleteFunc(channel.messages, func(x *Message) bool { return x == m })
		return nil, nil //nolint:nilnil // no content
	}
	return s.edit(c, channel, m)
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// history returns messages, newest first: those right after an id, or the newest ones.
func (s *Server) history(c *call, from *channel) (any, *apiError) {
	q := c.r.URL.Query()
	limit := 50
	if text := q.Get("limit"); text != "" {
		var err error
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > 100 {
			return nil, invalid("limit", "int value should be less than or equal to 100")
		}
	}
	after, _ := strconv.ParseInt(q.Get("after"), 10, 64)
	all := []any{}
	for _, m := range from.messages {
		if id, _ := strconv.ParseInt(m.ID, 10, 64); id > after {
			s.renew(m)
			all = append(all, s.render(from, m, false))
		}
	}
	if q.Get("after") == "" {
		all = all[max(0, len(all)-limit):]
	}
	all = all[:min(len(all), limit)]
	slices.Reverse(all)
	return all, nil
}

// body is that of a message.
type body struct {
	Content      *string `json:"content"`
	Nonce        string  `json:"nonce"`
	EnforceNonce bool    `json:"enforce_nonce"`
	Reference    *struct {
		MessageID       string `json:"message_id"`
		FailIfNotExists *bool  `json:"fail_if_not_exists"`
	} `json:"message_reference"`
	Components *[]struct {
		Type       int `json:"type"`
		Components []struct {
			Type  int    `json:"type"`
			Style int    `json:"style"`
			Label string `json:"label"`
			ID    string `json:"custom_id"`
		} `json:"components"`
	} `json:"components"`
	Mentions *struct {
		Parse []string `json:"parse"`
	} `json:"allowed_mentions"`
}

// check reads the body of a message.
func (c *call) check() (b body, buttons []Button, refusal *apiError) {
	if len(c.body) > 0 {
		if err := json.Unmarshal(c.body, &b); err != nil {
			return b, nil, refuse(http.StatusBadRequest, 50109, "The request body contains invalid JSON.")
		}
	}
	if b.Content != nil && utf8.RuneCountInString(*b.Content) > maxText {
		return b, nil, invalid("content", "Must be 2000 or fewer in length.")
	}
	if len(b.Nonce) > maxNonce {
		return b, nil, invalid("nonce", "Must be 25 or fewer in length.")
	}
	if len(c.files) > maxFiles {
		return b, nil, invalid("files", "Must be 10 or fewer in length.")
	}
	if b.Components == nil {
		return b, nil, nil
	}
	if len(*b.Components) > 5 {
		return b, nil, invalid("components", "Must be 5 or fewer in length.")
	}
	seen := map[string]bool{}
	for _, row := range *b.Components {
		if row.Type != 1 || len(row.Components) < 1 || len(row.Components) > 5 {
			return b, nil, invalid("components", "Must be between 1 and 5 in length.")
		}
		for _, x := range row.Components {
			switch {
			case x.Type != 2 || x.Style < 1 || x.Style > 4:
				return b, nil, invalid("components", "Value is not a button.")
			case x.ID == "" || utf8.RuneCountInString(x.ID) > 100:
				return b, nil, invalid("components", "custom_id must be between 1 and 100 in length.")
			case seen[x.ID]:
				return b, nil, invalid("components", "Component custom id cannot be duplicated")
			case x.Label == "" || utf8.RuneCountInString(x.Label) > 80:
				return b, nil, invalid("components", "label must be between 1 and 80 in length.")
			}
			seen[x.ID] = true
			buttons = append(buttons, Button{Label: x.Label, ID: x.ID})
		}
	}
	return b, buttons, nil
}

// nonced is a message that has a nonce.
type nonced struct {
	channel *channel
	message *Message
	at      time.Time
}

// create sends a message; mu is held.
func (s *Server) create(c *call, to *channel) (any, *apiError) {
	b, buttons, refusal := c.check()
	switch {
	case refusal != nil:
		return nil, refusal
	case to.refusal != nil:
		return nil, to.refusal
	case (b.Content == nil || strings.TrimSpace(*b.Content) == "") && len(c.files) == 0:
		return nil, refuse(http.StatusBadRequest, 50006, "Cannot send an empty message")
	}
	if first, ok := s.nonces[b.Nonce]; ok && b.EnforceNonce && b.Nonce != "" && s.now().Sub(first.at) < nonceTime {
		return s.render(first.channel, first.message, false), nil
	}
	m := &Message{ID: s.newID(), Channel: to.ID, Author: BotID, ByBot: true, Nonce: b.Nonce, Buttons: buttons,
		Files: c.files, At: s.now()}
	if b.Content != nil {
		m.Text = strings.TrimSpace(*b.Content)
	}
	if b.Reference != nil {
		m.ReplyTo = b.Reference.MessageID
		if to.find(m.ReplyTo) == nil && (b.Reference.FailIfNotExists == nil || *b.Reference.FailIfNotExists) {
			return nil, invalid("message_reference", "Unknown message")
		}
	}
	m.attachments = s.attach(c.files)
	to.messages = append(to.messages, m)
	s.accepted++
	if b.Nonce != "" {
		s.nonces[b.Nonce] = nonced{to, m, s.now()}
	}
	c.accepted = append(c.accepted, copyOf(m))
	d := s.render(to, m, true)
	s.dispatch("MESSAGE_CREATE", to, d)
	return s.render(to, m, false), nil
}

// edit changes a message; mu is held.
func (s *Server) edit(c *call, in *channel, m *Message) (any, *apiError) {
	b, buttons, refusal := c.check()
	if refusal != nil {
		return nil, refusal
	}
	text := m.Text
	if b.Content != nil {
		text = strings.TrimSpace(*b.Content)
	}
	if text == "" && len(m.Files) == 0 {
		return nil, refuse(http.StatusBadRequest, 50006, "Cannot send an empty message")
	}
	if b.Content != nil {
		m.EditedAt = s.now()
		m.Edits++
	}
	m.Text = text
	if b.Components != nil {
		m.Buttons = buttons
	}
	c.accepted = append(c.accepted, copyOf(m))
	s.dispatch("MESSAGE_UPDATE", in, s.render(in, m, true))
	return s.render(in, m, false), nil
}

// callback answers an interaction; mu is held.
func (s *Server) callback(c *call) *apiError {
	i := s.interactions[c.ids[0]]
	switch {
	case i == nil || i.token != c.ids[1] || s.now().Sub(i.at) > 3*time.Second && !i.answered:
		return refuse(http.StatusNotFound, 10062, "Unknown interaction")
	case i.answered:
		return refuse(http.StatusBadRequest, 40060, "Interaction has already been acknowledged.")
	}
	var d struct {
		Type int             `json:"type"`
		Data json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(c.body, &d); err != nil {
		return invalid("type", err.Error())
	}
	channel := s.channels[i.channel]
	switch d.Type {
	case 4:
		var said struct {
			Content string `json:"content"`
			Flags   int    `json:"flags"`
		}
		if err := json.Unmarshal(d.Data, &said); err != nil || said.Content == "" {
			return invalid("data", "Cannot send an empty message")
		}
		if said.Flags&64 != 0 {
			s.ephemeral = append(s.ephemeral, said.Content)
		}
	case 5, 6:
	case 7:
		m := channel.find(i.message)
		if m == nil {
			return invalid("type", "This interaction has no message.")
		}
		c.body = d.Data
		if _, refusal := s.edit(c, channel, m); refusal != nil {
			return refusal
		}
	default:
		return invalid("type", "Value must be one of {1, 4, 5, 6, 7, 8, 9, 10}.")
	}
	i.answered = true
	return nil
}

// Command is a slash command of the bot.
type Command struct {
	Name         string            `json:"name"`
	Description  string            `json:"description"`
	Translations map[string]string `json:"description_localizations"`
	Options      []struct {
		Type        int    `json:"type"`
		Name        string `json:"name"`
		Description string `json:"description"`
		Required    bool   `json:"required"`
	} `json:"options"`
}

var commandPattern = regexp.MustCompile(`^[-_a-z0-9]{1,32}$`)

// setCommands replaces the slash commands; mu is held.
func (s *Server) setCommands(c *call) (any, *apiError) {
	if c.ids[0] != BotID {
		return nil, refuse(http.StatusForbidden, 20012, "You are not authorized to perform this action on this application")
	}
	var all []Command
	if err := json.Unmarshal(c.body, &all); err != nil {
		return nil, invalid("commands", err.Error())
	}
	if len(all) > 100 {
		return nil, refuse(http.StatusBadRequest, 30032, "Maximum number of application commands reached (100)")
	}
	for _, one := range all {
		texts := []string{one.Description}
		for _, t := range one.Translations {
			texts = append(texts, t)
		}
		for _, o := range one.Options {
			if !commandPattern.MatchString(o.Name) || o.Type != 3 {
				return nil, invalid("options", "String value did not match validation regex.")
			}
			texts = append(texts, o.Description)
		}
		if !commandPattern.MatchString(one.Name) {
			return nil, invalid("name", "String value did not match validation regex.")
		}
		for _, t := range texts {
			if n := utf8.RuneCountInString(t); n < 1 || n > 100 {
				return nil, invalid("description", "Must be between 1 and 100 in length.")
			}
		}
	}
	s.commands = all
	return all, nil
}

// download serves a file.
func (s *Server) download(w http.ResponseWriter, r *http.Request, fault faultAt) {
	s.mu.Lock()
	f := s.files[r.URL.Path]
	s.mu.Unlock()
	if f == nil || f.expired {
		http.Error(w, "This content is no longer available.", http.StatusNotFound)
		return
	}
	if !fault.after(w, r, f.Data) {
		return
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(f.Data)))
	_, _ = w.Write(f.Data) //nolint:gosec // data for a test
}

func encode(result any, refusal *apiError) (int, []byte) {
	if refusal != nil {
		d := map[string]any{"message": refusal.message, "code": refusal.code}
		if refusal.errors != nil {
			d["errors"] = refusal.errors
		}
		if refusal.status == http.StatusTooManyRequests {
			d["retry_after"], d["global"] = refusal.retry, refusal.global
		}
		b, _ := json.Marshal(d)
		return refusal.status, b
	}
	if result == nil {
		return http.StatusNoContent, nil
	}
	b, err := json.Marshal(result)
	if err != nil {
		panic("discordtest: a result does not encode: " + err.Error())
	}
	return http.StatusOK, b
}

func write(w http.ResponseWriter, status int, body []byte, refusal *apiError) {
	w.Header().Set("Content-Type", "application/json")
	if refusal != nil && refusal.status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(refusal.retry))))
		if refusal.global {
			w.Header().Set("X-RateLimit-Global", "true")
			w.Header().Set("X-RateLimit-Scope", "global")
		}
	}
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
