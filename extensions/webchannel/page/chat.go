package page

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"embed"
	"encoding/json"
	"html/template"
	"net/http"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/extensions/webchannel/chat"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
)

//go:embed chat.html
var chatFiles embed.FS

var chatPage = Parse(chatFiles, "chat.html")

const (
	firstLines = 50  // of a conversation, when its page opens
	moreLines  = 100 // that are read at once afterwards
	listed     = 200 // conversations in the list
)

// programs begins the names of the conversations of programs; see door.Visitor.
const programs = "api~"

// chatView is what the template of the chat sees.
type chatView struct {
	Name          string
	Title         string
	Conversations []conversationView
	More          int    // conversations that are not listed
	All           bool   // those of programs are listed, too
	HasPrograms   bool   // there are such
	New           string // name of a new conversation
	Lines         []lineView
	First, Last   int64 // numbers of the lines that are shown
	MaxFiles      int
}

// conversationView is an entry of the list.
type conversationView struct {
	View
	chat.Conversation
	Current bool
}

// Label is how the conversation is called.
func (c conversationView) Label() string {
	if c.Name == "" {
		return words.Say(c.Visitor.Language, "Main conversation")
	}
	return cmp.Or(c.Title, words.Say(c.Visitor.Language, "Conversation"))
}

// lineView is a line of a conversation.
type lineView struct {
	View
	chat.Line
}

// Body is the text as markup: what a person wrote is as they wrote it.
func (l lineView) Body() template.HTML {
	if l.Mine {
		return template.HTML(template.HTMLEscapeString(l.Text)) //nolint:gosec // it is escaped
	}
	return Markdown(l.Text)
}

// Trace is the id by which the trace of the message is found.
func (l lineView) Trace() string { return cmp.Or(l.Event, l.ID) }

// Files are its files, and what it has besides.
func (l lineView) Files() (all []fileView) {
	for _, a := range l.Attachments {
		all = append(all, fileView{a})
	}
	return all
}

// fileView is a file of a line.
type fileView struct{ contract.Attachment }

// Shown is how the page shows it: image, audio, video, or a link.
func (f fileView) Shown() string {
	family, _, _ := strings.Cut(f.MIME, "/")
	switch {
	case f.Blob == "":
		return ""
	case contract.IsImageType(f.MIME):
		return "image"
	case f.Kind == contract.KindVoice, family == "audio":
		return "audio"
	case family == "video":
		return "video"
	}
	return "link"
}

// Label is its name for people.
func (f fileView) Label() string { return cmp.Or(f.Name, f.Reference()) }

// Bytes is its size for people.
func (f fileView) Bytes() string {
	if f.Size == 0 {
		return ""
	}
	return humanize.Bytes(uint64(max(0, f.Size)))
}

// chats serves the chat.
type chats struct{ Options }

func (c *chats) page(w http.ResponseWriter, r *http.Request) {
	v := door.From(r.Context())
	if !v.May(door.ScopeMessages, false) {
		Refuse(w, r, http.StatusForbidden)
		return
	}
	name := r.URL.Query().Get("c")
	all, err := c.Chat.List(r.Context(), v)
	if err != nil {
		Fail(w, r, err)
		return
	}
	lines, err := c.Chat.Lines(r.Context(), v, name, 0, before(0), firstLines)
	if err != nil {
		Fail(w, r, err)
		return
	}
	view := View{Visitor: v}
	show := chatView{Name: name, New: strings.ToLower(rand.Text()[:12]), MaxFiles: chat.MaxFiles}
	current := conversationView{View: view, Conversation: chat.Conversation{Name: name}, Current: true}
	show.All = r.URL.Query().Has("all") || strings.HasPrefix(name, programs)
	for _, one := range all {
		if program := strings.HasPrefix(one.Name, programs); program && !show.All {
			show.HasPrograms = true
			continue
		}
		item := conversationView{View: view, Conversation: one, Current: one.Name == name}
		if item.Current {
			current = item
		}
		if len(show.Conversations) == listed {
			show.More++
			continue
		}
		show.Conversations = append(show.Conversations, item)
	}
	show.Title = current.Label()
	for _, l := range lines {
		show.Lines = append(show.Lines, lineView{view, l})
	}
	if len(lines) > 0 {
		show.First, show.Last = lines[0].Seq, lines[len(lines)-1].Seq
	}
	Render(w, r, Page{
		Title: show.Title, Active: "/", Content: chatPage, Data: show, Wide: true, Styles: []string{"chat.css"},
		Scripts: []string{"chat.js"}, Texts: chatTexts(v.Language),
	})
}

// before is the number that stands for the end of a conversation: zero is the default.
func before(seq int64) int64 {
	if seq <= 0 {
		return 1 << 62
	}
	return seq
}

// chatTexts are the texts of the script.
func chatTexts(language string) map[string]string {
	say := func(text string, args ...any) string { return words.Say(language, text, args...) }
	return map[string]string{
		"copy":       say("Copy"),
		"copied":     say("Copied."),
		"sending":    say("Sending…"),
		"unsent":     say("Not sent: %s", "%s"),
		"retry":      say("Try again"),
		"discard":    say("Discard"),
		"remove":     say("Remove %s", "%s"),
		"uploading":  say("Uploading…"),
		"toomany":    say("a message can have %d files", chat.MaxFiles),
		"toolarge":   say("the file is larger than %d MB", chat.MaxUpload>>20),
		"maxbytes":   strconv.Itoa(chat.MaxUpload),
		"delete":     say("Delete this conversation with all its messages?"),
		"nomic":      say("The microphone can't be used: %s", "%s"),
		"recording":  say("Recording… %s", "%s"),
		"new":        say("New message from %s", "%s"),
		"notified":   say("You will be notified while this page is open."),
		"notdenied":  say("The browser doesn't allow notifications from this page. Its settings do."),
		"pressed":    say("Sent: %s", "%s"),
		"loadfailed": say("Earlier messages can't be read now: %s", "%s"),
	}
}

// lineFrame is a line as the script gets it.
type lineFrame struct {
	Seq    int64  `json:"seq"`
	ID     string `json:"id"`
	Mine   bool   `json:"mine"`
	Draft  string `json:"draft,omitempty"`
	HTML   string `json:"html"`
	Text   string `json:"text"` // the beginning, for a notification
	Notice bool   `json:"notice,omitempty"`
}

// noticeBytes is how much of a text a notification shows.
const noticeBytes = 200

func frameOf(v door.Visitor, l chat.Line) (lineFrame, error) {
	var b bytes.Buffer
	err := chatPage().Lookup("line").Execute(&b, lineView{View{Visitor: v}, l})
	return lineFrame{
		Seq: l.Seq, ID: l.ID, Mine: l.Mine, Draft: l.Draft, HTML: b.String(), Notice: l.Notice,
		Text: contract.Truncate(l.Text, noticeBytes, "…"),
	}, err
}

// said is a message of the script.
type said struct {
	ID           string   `json:"id"`
	Conversation string   `json:"conversation"`
	Text         string   `json:"text"`
	ReplyTo      string   `json:"reply_to"`
	Files        []string `json:"files"` // blobs
}

func (c *chats) say(w http.ResponseWriter, r *http.Request) {
	var s said
	v, ok := c.begin(w, r, &s)
	if !ok {
		return
	}
	m := chat.Message{ID: s.ID, Conversation: s.Conversation, Text: s.Text, ReplyTo: s.ReplyTo}
	for _, blob := range s.Files {
		m.Attachments = append(m.Attachments, contract.Attachment{Blob: blob})
	}
	l, err := c.Chat.Say(r.Context(), v, m)
	if err != nil {
		Problem(w, r, err)
		return
	}
	f, err := frameOf(v, l)
	if err != nil {
		Problem(w, r, err)
		return
	}
	Reply(w, f)
}

// begin reads the body of a request that changes something; ok is false if it was answered.
func (c *chats) begin(w http.ResponseWriter, r *http.Request, into any) (v door.Visitor, ok bool) {
	v = door.From(r.Context())
	if !v.May(door.ScopeMessages, true) {
		Problem(w, r, errNotAllowed)
		return v, false
	}
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		Problem(w, r, errNotJSON)
		return v, false
	}
	if err := json.NewDecoder(r.Body).Decode(into); err != nil {
		Problem(w, r, errNotJSON)
		return v, false
	}
	return v, true
}

func (c *chats) read(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Conversation string `json:"conversation"`
		Seq          int64  `json:"seq"`
	}
	if v, ok := c.begin(w, r, &q); ok {
		c.done(w, r, c.Chat.Read(r.Context(), v, q.Conversation, q.Seq))
	}
}

func (c *chats) remove(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Conversation string `json:"conversation"`
	}
	if v, ok := c.begin(w, r, &q); ok {
		c.done(w, r, c.Chat.Delete(r.Context(), v, q.Conversation))
	}
}

func (c *chats) done(w http.ResponseWriter, r *http.Request, err error) {
	if err != nil {
		Problem(w, r, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// earlier answers with the lines before a number.
func (c *chats) earlier(w http.ResponseWriter, r *http.Request) {
	v := door.From(r.Context())
	if !v.May(door.ScopeMessages, false) {
		Problem(w, r, errNotAllowed)
		return
	}
	lines, err := c.Chat.Lines(r.Context(), v, r.URL.Query().Get("c"), 0, before(number(r, "before")), moreLines)
	if err != nil {
		Problem(w, r, err)
		return
	}
	frames := make([]lineFrame, len(lines))
	for i, l := range lines {
		if frames[i], err = frameOf(v, l); err != nil {
			Problem(w, r, err)
			return
		}
	}
	Reply(w, map[string]any{"lines": frames})
}
