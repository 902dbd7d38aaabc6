package telegramtest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"image"
	_ "image/gif" // formats of photos
	_ "image/jpeg"
	_ "image/png"
	"net/http"
	"slices"
	"strings"
)

// Limits of files that bots send.
const (
	MaxPhoto   = 10 << 20
	MaxUpload  = 50 << 20
	MaxCaption = 1024 // UTF-16 units
	maxSides   = 10_000
	maxRatio   = 20
)

// media are the kinds of files that bots send, by the method in lower case.
var media = map[string]string{
	"sendphoto": "photo", "senddocument": "document", "sendvoice": "voice", "sendaudio": "audio", "sendvideo": "video",
	"sendanimation": "animation",
}

// sendMedia answers sendPhoto, sendDocument and so on.
func (s *Server) sendMedia(b *bot, p params, kind string) (any, *apiError) {
	f, refusal := p.file(kind)
	if refusal != nil {
		return nil, refusal
	}
	rows, refusal := keyboard(p)
	if refusal != nil {
		return nil, refusal
	}
	only := Message{Media: kind, File: f, Buttons: rows}
	sent, refusal := s.addSent(b, p, []Message{only}, p["caption"], p["caption_entities"])
	if refusal != nil {
		return nil, refusal
	}
	return sent[0], nil
}

// sendPlace sends a location, a venue or a contact, whose fields are the text of the message.
func (s *Server) sendPlace(b *bot, p params, kind string) (any, *apiError) {
	needed := map[string][]string{
		"location": {"latitude", "longitude"}, "venue": {"latitude", "longitude", "title", "address"},
		"contact": {"phone_number", "first_name"},
	}[kind]
	var values []string
	for _, name := range needed {
		if p[name] == "" {
			return nil, badRequest("%s is empty", name)
		}
		values = append(values, p[name])
	}
	rows, refusal := keyboard(p)
	if refusal != nil {
		return nil, refusal
	}
	only := Message{Media: kind, Text: strings.Join(values, "|"), Buttons: rows}
	sent, refusal := s.addSent(b, p, []Message{only}, "", "")
	if refusal != nil {
		return nil, refusal
	}
	return sent[0], nil
}

func (s *Server) sendMediaGroup(b *bot, p params) (any, *apiError) {
	var parts []struct {
		Type     string          `json:"type"`
		Media    string          `json:"media"`
		Caption  string          `json:"caption"`
		Entities json.RawMessage `json:"caption_entities"`
	}
	if p.json("media", &parts) != nil {
		return nil, badRequest("can't parse media JSON object")
	}
	if len(parts) < 2 || len(parts) > 10 {
		return nil, badRequest("there must be 2 to 10 items in an album")
	}
	var all []Message
	for _, part := range parts {
		field, attached := strings.CutPrefix(part.Media, "attach://")
		if !attached {
			return nil, badRequest("wrong remote file identifier specified")
		}
		p["type "+field] = part.Type
		f, refusal := p.file(field)
		if refusal != nil {
			return nil, refusal
		}
		all = append(all, Message{Media: part.Type, File: f})
	}
	return s.addSent(b, p, all, parts[0].Caption, string(parts[0].Entities))
}

// file returns an uploaded file, as the kind of its field or, in an album, its type.
func (p params) file(field string) (File, *apiError) {
	data, ok := p[field]
	kind := cmp.Or(p["type "+field], field)
	switch f := (File{Name: p["name "+field], Data: []byte(data)}); {
	case !ok:
		return f, badRequest("there is no %s in the request", kind)
	case len(data) == 0:
		return f, badRequest("file must be non-empty")
	case len(data) > MaxUpload:
		return f, &apiError{code: http.StatusRequestEntityTooLarge, description: "Request Entity Too Large"}
	case kind != "photo":
		return f, nil
	case len(data) > MaxPhoto:
		return f, badRequest("file is too big")
	default:
		c, _, err := image.DecodeConfig(bytes.NewReader(f.Data))
		if err != nil {
			return f, badRequest("IMAGE_PROCESS_FAILED")
		}
		if c.Width+c.Height > maxSides || c.Width > maxRatio*c.Height || c.Height > maxRatio*c.Width {
			return f, badRequest("PHOTO_INVALID_DIMENSIONS")
		}
		return f, nil
	}
}

// addSent adds messages with media that a bot sends, the first one with a caption.
func (s *Server) addSent(b *bot, p params, all []Message, caption, entities string) ([]any, *apiError) {
	c, refusal := s.target(p)
	if refusal != nil {
		return nil, refusal
	}
	if caption != "" {
		said, marks, refusal := formatText(params{"text": caption, "entities": entities, "parse_mode": p["parse_mode"]})
		if refusal != nil {
			return nil, refusal
		}
		if utf16Len(said) > MaxCaption {
			return nil, badRequest("message caption is too long")
		}
		all[0].Text, all[0].Entities = said, marks
	}
	thread := int(p.int("message_thread_id"))
	if refusal := c.checkThread(thread); refusal != nil {
		return nil, refusal
	}
	if refusal := s.admit(c); refusal != nil {
		return nil, refusal
	}
	var answers []any
	for i, m := range slices.Clone(all) {
		m.Chat, m.Thread, m.From, m.ByBot = c.info.ID, thread, b.user.ID, true
		c.mu.Lock()
		m.At = s.now()
		all[i] = c.append(m)
		answers = append(answers, s.wire(c, all[i], b.user))
		c.mu.Unlock()
		s.book.sent()
		if s.onAccept != nil {
			s.onAccept(all[i])
		}
	}
	return answers, nil
}
