package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/emersion/go-message/mail"
	"github.com/emersion/go-msgauth/authres"
	"golang.org/x/net/html"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk"
)

// received is a mail that is a person's message.
type received struct {
	message sdk.UserMessage
	key     string // the same for the same mail; empty: it has no Message-ID
	thread  thread
}

// thread is what an answer in it needs.
type thread struct {
	ID         string   `json:"id"` // Message-ID of its first mail
	Subject    string   `json:"subject"`
	References []string `json:"references"` // Message-IDs, the last one is the newest mail's
}

// mostReferences of a thread are kept: the first and the newest.
const mostReferences = 20

func threadKey(id string) string {
	sum := sha256.Sum256([]byte(id))
	return "thread/" + hex.EncodeToString(sum[:16])
}

func (t thread) put() sdk.Effect {
	if n := len(t.References); n > mostReferences {
		t.References = append(t.References[:1:1], t.References[n-mostReferences+1:]...)
	}
	data, err := json.Marshal(t)
	if err != nil {
		panic(err) // strings
	}
	return sdk.Put(threadKey(t.ID), data)
}

// skipError means that a mail is no person's message.
type skipError struct{ why string }

func (e *skipError) Error() string { return e.why }

// read turns a mail into a message. Its files are stored.
func (c *channel) read(ctx context.Context, from io.Reader) (r received, err error) {
	m, err := mail.CreateReader(from)
	if err != nil && m == nil {
		return r, &skipError{"it cannot be read: " + err.Error()}
	}
	author, err := c.author(&m.Header)
	if err != nil {
		return r, err
	}
	id, _ := m.Header.MessageID()
	references, _ := m.Header.MsgIDList("References")
	if len(references) == 0 {
		references, _ = m.Header.MsgIDList("In-Reply-To")
	}
	r.thread.References = slices.Concat(references, []string{id})
	r.thread.ID = r.thread.References[0]
	r.thread.Subject, _ = m.Header.Subject()
	if id != "" {
		sum := sha256.Sum256([]byte(author.Address + "\n" + id))
		r.key = hex.EncodeToString(sum[:])
	}
	address := strings.ToLower(author.Address)
	r.message = sdk.UserMessage{
		UserID: address, UserName: author.Name, ConversationID: address, ThreadID: r.thread.ID, MessageID: id,
	}
	if at, err := m.Header.Date(); err == nil && !at.IsZero() {
		r.message.SentAt = at.Unix()
	}
	plain, markup, err := c.parts(ctx, m, &r.message)
	if err != nil {
		return r, err
	}
	if plain == "" {
		plain = textOf(markup)
	}
	text := withoutQuotes(plain)
	if len(references) == 0 && r.thread.Subject != "" { // the first mail of a thread: the subject is a part of it
		text = strings.TrimSpace(r.thread.Subject + "\n\n" + text)
	}
	r.message.Text = text
	return r, nil
}

// author is who wrote a mail, if that is a person and believed.
func (c *channel) author(h *mail.Header) (*mail.Address, error) {
	authors, err := h.AddressList("From")
	if err != nil || len(authors) != 1 {
		return nil, &skipError{"it has not one author"}
	}
	author := authors[0]
	if strings.EqualFold(author.Address, c.settings.Address) {
		return nil, &skipError{"it is the assistant's own"}
	}
	automatic := h.Get("Auto-Submitted") // RFC 3834
	switch precedence := strings.ToLower(h.Get("Precedence")); {
	case automatic != "" && !strings.HasPrefix(strings.ToLower(automatic), "no"),
		precedence == "bulk", precedence == "list", precedence == "junk", h.Has("List-Id"):
		return nil, &skipError{"a machine or a list sent it"}
	}
	if server := c.settings.AuthenticatedBy; server != "" && !passed(h, server) {
		return nil, &skipError{"that it is from " + author.Address + " is not proven: " + server + " found no dmarc=pass"}
	}
	return author, nil
}

// passed says that the server found the domain of From to be right. Only the topmost header
// is the server's own: others may be the sender's.
func passed(h *mail.Header, server string) bool {
	name, results, err := authres.Parse(h.Get("Authentication-Results"))
	if err != nil || !strings.EqualFold(name, server) {
		return false
	}
	for _, r := range results {
		if d, ok := r.(*authres.DMARCResult); ok && d.Value == authres.ResultPass {
			return true
		}
	}
	return false
}

// parts reads the text and the HTML of a mail, and stores its files.
func (c *channel) parts(ctx context.Context, m *mail.Reader, to *sdk.UserMessage) (plain, markup string, err error) {
	for {
		part, err := m.NextPart()
		if errors.Is(err, io.EOF) {
			return plain, markup, nil
		}
		if err != nil && part == nil { // broken, or cut off after the header
			return plain, markup, nil //nolint:nilerr // what was read is reported
		}
		switch h := part.Header.(type) {
		case *mail.InlineHeader:
			kind, _, _ := h.ContentType()
			body, err := io.ReadAll(io.LimitReader(part.Body, 1<<20))
			switch {
			case err != nil:
				c.kernel.Log().Warn("a part of a mail cannot be read", "error", err)
			case kind == "text/html":
				markup += string(body)
			case strings.HasPrefix(kind, "text/"):
				plain += string(body)
			}
		case *mail.AttachmentHeader:
			name, _ := h.Filename()
			kind, _, _ := h.ContentType()
			a := contract.Attachment{Kind: kindOf(kind), Name: name, MIME: kind}
			blob, err := c.kernel.PutBlob(ctx, part.Body)
			switch {
			case err == nil:
				a.Blob, a.Size = blob.Hash, blob.Size
			case errors.Is(err, contract.ErrTooLarge):
				to.Text += fmt.Sprintf("(%s is too large and was not read.)\n", name)
			default:
				return "", "", fmt.Errorf("store %s: %w", name, err)
			}
			to.Attachments = append(to.Attachments, a)
		}
	}
}

// kindOf is the kind of an attachment, by its type.
func kindOf(mime string) string {
	switch kind, _, _ := strings.Cut(mime, "/"); kind {
	case "image", "audio", "video":
		return kind
	}
	return "document"
}

// textOf is the text of HTML.
func textOf(markup string) string {
	var text strings.Builder
	hidden := 0
	for z := html.NewTokenizer(strings.NewReader(markup)); ; {
		kind := z.Next()
		if kind == html.ErrorToken {
			return strings.TrimSpace(text.String())
		}
		name, _ := z.TagName()
		tag := string(name)
		switch {
		case tag == "style" || tag == "script" || tag == "head":
			if kind == html.StartTagToken {
				hidden++
			} else if kind == html.EndTagToken && hidden > 0 {
				hidden--
			}
		case kind == html.TextToken && hidden == 0:
			text.Write(z.Text())
		case tag == "br" || tag == "p" && kind == html.EndTagToken || tag == "div" && kind == html.EndTagToken:
			text.WriteByte('\n')
		}
	}
}

// withoutQuotes cuts the earlier mail off that a reply ends with, which the session has.
func withoutQuotes(text string) string {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	end := len(lines)
	for end > 0 && (strings.HasPrefix(lines[end-1], ">") || strings.TrimSpace(lines[end-1]) == "") {
		end--
	}
	if end < len(lines) && end > 0 && strings.HasSuffix(strings.TrimSpace(lines[end-1]), ":") &&
		strings.Contains(strings.Join(lines[end:], "\n"), ">") {
		end-- // "On Monday, the assistant wrote:"
	}
	if kept := strings.TrimSpace(strings.Join(lines[:end], "\n")); kept != "" {
		return kept
	}
	return strings.TrimSpace(text)
}
