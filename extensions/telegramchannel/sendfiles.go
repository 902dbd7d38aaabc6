package telegramchannel

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/markdown"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/attachment"
	"github.com/switchboard-run/switchboard/sdk/httpcall"
)

const (
	maxCaption    = 1024 // UTF-16 units
	maxPhoto      = 10 << 20
	uploadTimeout = 5 * time.Minute
)

// step is one request of a message with files: its text, a file, or images as an album.
type step struct {
	files   []contract.Attachment // none: the text
	caption string
}

// stepsOf returns the requests of a message. They depend on the message alone, so a
// repetition goes on where the last one ended. The text is a caption if it fits, and if it
// does not replace a draft. The last one has the buttons: the text, because an album can't
// have any, unless it is the caption of the only file.
func stepsOf(text string, files []contract.Attachment, hasDraft, hasActions bool) (steps []step) {
	said, _ := render(text)
	caption := ""
	fits := !hasDraft && (strings.TrimSpace(text) == "" ||
		files[0].Blob != "" && markdown.Len(said)+len(contract.RepeatMark) <= maxCaption)
	textLast := hasActions && (len(files) > 1 || !fits)
	switch {
	case textLast, strings.TrimSpace(text) == "":
	case fits:
		caption = text
	default:
		steps = append(steps, step{})
	}
	for i := 0; i < len(files); {
		n := i + 1
		for isPhoto(files[i]) && n < len(files) && n-i < maxAlbum && isPhoto(files[n]) {
			n++
		}
		steps = append(steps, step{files: files[i:n], caption: caption})
		i, caption = n, ""
	}
	if textLast {
		steps = append(steps, step{})
	}
	return steps
}

func isPhoto(a contract.Attachment) bool { return methodOf(a) == "photo" }

// methodOf returns the kind of media as which Telegram takes a file. A file of an unknown
// type is what its kind says: if Telegram refuses it, it goes as a document.
func methodOf(a contract.Attachment) string {
	if method, _ := placeOf(a); method != "" {
		return method
	}
	is := func(types ...string) bool { return a.MIME == "" || slices.Contains(types, a.MIME) }
	switch a.Kind {
	case contract.KindImage, contract.KindSticker:
		switch {
		case a.MIME == "image/gif":
			return "animation"
		case a.Size <= maxPhoto && is("image/jpeg", "image/png", "image/webp"):
			return "photo"
		}
	case contract.KindVoice:
		if is("audio/ogg", "audio/mpeg", "audio/mp4") {
			return "voice"
		}
	case contract.KindAudio:
		if is("audio/mpeg", "audio/mp4", "audio/x-m4a") {
			return "audio"
		}
	case contract.KindVideo:
		if is("video/mp4") {
			return "video"
		}
	}
	return "document"
}

// fileName returns the name of a file that Telegram shows.
func fileName(a contract.Attachment) string {
	if name := attachment.Name(a.Name); path.Ext(name) != "" || name != "" && a.Kind != contract.KindVoice {
		return name
	}
	end := ""
	if all, err := mime.ExtensionsByType(a.MIME); err == nil && len(all) > 0 {
		end = all[0]
	}
	return cmp.Or(a.Kind, "file") + end
}

// sendFiles sends a message with files, in several requests if need be. How many of them
// Telegram has accepted is stored, so that none is repeated that was answered.
func (a *activation) sendFiles(ctx context.Context, to target, m sdk.Message, files []contract.Attachment,
	hasDraft bool, text func() (sdk.Receipt, error),
) (sdk.Receipt, error) {
	key := "sent/" + m.ID
	v, err := a.kernel.Get(ctx, key)
	if err != nil {
		return sdk.Receipt{}, sdk.Retry(time.Second, err)
	}
	done := 0
	if v.Version != 0 {
		if err := v.Decode(&done); err != nil {
			return sdk.Receipt{}, sdk.Drop(err.Error())
		}
	}
	var r sdk.Receipt
	steps := stepsOf(m.Unmarked, files, hasDraft, len(m.Actions) > 0)
	for i := min(done, len(steps)-1); i < len(steps); i++ {
		request := text
		if len(steps[i].files) > 0 {
			s, m := steps[i], m
			if i < len(steps)-1 {
				m.Actions = nil
			}
			if m.Repeat && i == done { // what came before was answered
				s.caption = contract.RepeatMark + s.caption
			}
			request = func() (sdk.Receipt, error) { return a.sendStep(ctx, to, m, s) }
		}
		if r, err = a.paced(ctx, to, request); err != nil {
			return sdk.Receipt{}, err
		}
		if i == len(steps)-1 {
			break
		}
		if _, err := a.kernel.Commit(ctx, sdk.Put(key, i+1)); err != nil {
			return sdk.Receipt{}, sdk.Unknown(fmt.Errorf("store how much of a message was sent: %w", err))
		}
	}
	if len(steps) > 1 {
		r.Effects = append(r.Effects, sdk.Delete(key))
	}
	return r, nil
}

// sendStep sends a file or an album. What Telegram refuses as a photo, voice message and
// so on goes as a document, and a file that it refuses altogether is named.
func (a *activation) sendStep(ctx context.Context, to target, m sdk.Message, s step) (sdk.Receipt, error) {
	isFile := s.files[0].Blob != ""
	if !isFile && s.caption != "" { // it is repeated: only a text can say so
		return a.nameFiles(ctx, to, m, s)
	}
	kinds := []string{methodOf(s.files[0])}
	if kinds[0] != "document" && isFile {
		kinds = append(kinds, "document")
	}
	caption, entities := "", []models.MessageEntity(nil)
	if s.caption != "" {
		caption, entities = render(s.caption)
	}
	for {
		sent, err := a.sendMedia(ctx, to, m, kinds[0], s.files, caption, entities)
		if err == nil {
			return a.receipt(to, sent.Chat.ID, sent.ID, m), nil
		}
		var unread *httpcall.BlobError
		var call *httpcall.Error
		kind, after := classify(err)
		switch {
		case errors.As(err, &unread) && errors.Is(err, contract.ErrNotFound):
			return a.nameFiles(ctx, to, m, s)
		case errors.As(err, &unread):
			return sdk.Receipt{}, sdk.Retry(serverRetry, err)
		case errors.As(err, &call) && call.Status == http.StatusRequestEntityTooLarge:
			return a.nameFiles(ctx, to, m, s)
		case kind == malformed && entities != nil && strings.Contains(err.Error(), "ntit"): // an entity
			a.log.Warn("Telegram refused the formatting; sending plain text", "error", a.api.redact(err))
			caption, entities = s.caption, nil
			continue
		case kind == malformed && !isAboutChat(err) && len(kinds) > 1:
			a.log.Info("Telegram refused a file; sending it as a document", "as", kinds[0], "error", a.api.redact(err))
			kinds = kinds[1:]
			continue
		case kind == malformed && !isAboutChat(err):
			a.log.Warn("Telegram refused a file", "error", a.api.redact(err))
			return a.nameFiles(ctx, to, m, s)
		case kind == migrated:
			var moved *bot.MigrateError
			if errors.As(err, &moved) && int64(moved.MigrateToChatID) != to.chat {
				to.chat = int64(moved.MigrateToChatID)
				continue
			}
		case kind == limited:
			a.pace.block(to.chat, after)
		}
		return sdk.Receipt{}, a.outcome(kind, after, err)
	}
}

// nameFiles sends the text of a step, and the names of its files.
func (a *activation) nameFiles(ctx context.Context, to target, m sdk.Message, s step) (sdk.Receipt, error) {
	lines := []string{s.caption}
	for _, f := range s.files {
		if f.Blob == "" && f.Name != "" {
			lines = append(lines, f.Name)
		} else {
			lines = append(lines, f.Reference())
		}
	}
	m.Text = strings.TrimSpace(strings.Join(lines, "\n"))
	return a.send(ctx, to, m)
}

// sendMedia sends files as one kind of media.
func (a *activation) sendMedia(ctx context.Context, to target, m sdk.Message, kind string, files []contract.Attachment,
	caption string, entities []models.MessageEntity,
) (*models.Message, error) {
	fields := map[string]string{"chat_id": to.conversation()}
	if to.topic != 0 {
		fields["message_thread_id"] = to.thread()
	}
	answers := 0
	if m.Part <= 1 {
		answers = parseMessageID(m.ReplyTo)
	}
	if p := newMessage(to, answers); p.ReplyParameters != nil {
		set(fields, "reply_parameters", p.ReplyParameters)
	}
	if len(files) == 1 {
		if caption != "" {
			fields["caption"] = caption
		}
		if len(entities) > 0 {
			set(fields, "caption_entities", entities)
		}
		if buttons := keyboard(m.Actions); buttons != nil {
			set(fields, "reply_markup", buttons)
		}
		uploaded := []httpcall.FormFile{formFile(kind, files[0])}
		if _, place := placeOf(files[0]); place != nil {
			maps.Copy(fields, place)
			uploaded = nil
		}
		sent := &models.Message{}
		method := "send" + strings.ToUpper(kind[:1]) + kind[1:]
		return sent, a.upload(ctx, method, fields, uploaded, sent)
	}
	var parts []map[string]any
	var all []httpcall.FormFile
	for i, f := range files {
		field := "file" + strconv.Itoa(i)
		part := map[string]any{"type": kind, "media": "attach://" + field}
		if i == 0 && caption != "" {
			part["caption"] = caption
			if len(entities) > 0 {
				part["caption_entities"] = entities
			}
		}
		parts, all = append(parts, part), append(all, formFile(field, f))
	}
	set(fields, "media", parts)
	var sent []*models.Message
	err := a.upload(ctx, "sendMediaGroup", fields, all, &sent)
	if err == nil && len(sent) == 0 {
		err = &httpcall.Error{Sent: true, Err: errors.New("no message in the response of sendMediaGroup")}
	}
	if err != nil {
		return nil, err
	}
	return sent[0], nil
}

func formFile(field string, a contract.Attachment) httpcall.FormFile {
	return httpcall.FormFile{Field: field, Name: fileName(a), File: a}
}

// set sets a field to a value in JSON.
func set(fields map[string]string, name string, value any) {
	if b, err := json.Marshal(value); err == nil {
		fields[name] = string(b)
	}
}
