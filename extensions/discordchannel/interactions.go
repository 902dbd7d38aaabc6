package discordchannel

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/pause"
)

// Kinds of answers to an interaction.
const (
	answerMessage = 4
	answerUpdate  = 7
)

// flagEphemeral shows a message only to the person who caused it.
const flagEphemeral = 1 << 6

// commandTaken is the answer to a slash command, whose result is a message.
const commandTaken = "👌"

// Limits of buttons.
const (
	maxRows   = 5
	rowLength = 5
	maxLabel  = 80 // characters
)

// buttons returns actions as components, in rows.
func buttons(actions []contract.Action) (rows []component) {
	for i, a := range actions[:min(len(actions), maxRows*rowLength)] {
		if i%rowLength == 0 {
			rows = append(rows, component{Type: componentRow})
		}
		label := []rune(a.Label)
		row := &rows[len(rows)-1]
		row.Components = append(row.Components, component{
			Type: componentButton, Style: styleSecondary, Label: string(label[:min(len(label), maxLabel)]),
			CustomID: fmt.Sprintf("%d:%s", i, a.Command), // the ids of a message are different
		})
	}
	return rows
}

// commandOf returns the command of a button.
func commandOf(customID string) string {
	_, command, _ := strings.Cut(customID, ":")
	return command
}

// parseInteraction converts a press of a button or a slash command. It is answered when
// it is stored.
func (s *session) parseInteraction(ctx context.Context, i interaction) (*pendingMessage, error) {
	person, in := i.User, i.Member
	if in != nil && in.User != nil {
		person = in.User
	}
	text := ""
	switch i.Type {
	case interactionComponent:
		text = commandOf(i.Data.CustomID)
	case interactionCommand:
		text = "/" + i.Data.Name
		for _, option := range i.Data.Options {
			var value string
			if json.Unmarshal(option.Value, &value) != nil {
				value = string(option.Value)
			}
			text += " " + value
		}
	}
	if text == "" || person == nil || person.Bot || i.ChannelID == "" {
		s.log.Info("skip an interaction of an unknown kind", "type", i.Type)
		return nil, nil //nolint:nilnil // there is none
	}
	p := &pendingMessage{Dedupe: "i/" + i.ID, stored: func() { s.answer(i) }} //nolint:contextcheck // outlives this call
	if i.Message != nil {
		p.also = sdk.Effects{sdk.Put(pressPrefix+i.ID, press{Channel: i.ChannelID, Message: i.Message.ID})}
	}
	p.Message = contract.UserMessage{
		Text: truncateInput(strings.TrimSpace(text)), UserID: person.ID, UserName: s.nameOf(person, in),
		Language: languageOf(i.Locale), MessageID: i.ID, SentAt: cmp.Or(timeOf(i.ID).Unix(), time.Now().Unix()),
	}
	if language := p.Message.Language; language != "" && s.languages[person.ID] != language {
		s.languages[person.ID] = language
		p.also = append(p.also, sdk.Put(languagePrefix+person.ID, language))
	}
	return p, s.locate(ctx, p, i.ChannelID, i.GuildID != "")
}

// languagePrefix precedes the ids of people, whose languages are stored: only interactions
// name them.
const languagePrefix = "language/"

// loadLanguages reads the languages of people.
func (s *session) loadLanguages(ctx context.Context) error {
	return s.kernel.Scan(ctx, languagePrefix, func(v sdk.Value) error {
		var language string
		if err := v.Decode(&language); err != nil {
			s.log.Error("decode the language of a person", "key", v.Key, "error", err)
			return nil
		}
		s.languages[strings.TrimPrefix(v.Key, languagePrefix)] = language
		return nil
	})
}

// languageOf returns the language of a locale such as en-US.
func languageOf(locale string) string {
	language, _, _ := strings.Cut(locale, "-")
	return language
}

// answer answers an interaction: a press by removing the buttons. It does not delay the
// events that follow.
func (s *session) answer(i interaction) {
	body := map[string]any{"type": answerMessage, "data": map[string]any{"content": commandTaken, "flags": flagEphemeral}}
	if i.Type == interactionComponent {
		body = map[string]any{"type": answerUpdate, "data": map[string]any{"components": []component{}}}
	}
	s.answers.Go(func() {
		ctx, cancel := context.WithTimeout(s.ctx, callTimeout)
		defer cancel()
		err := s.api.do(ctx, request{
			method: http.MethodPost, path: "/interactions/" + i.ID + "/" + i.Token + "/callback", body: body, free: true,
		}, nil)
		isPress := i.Type == interactionComponent && i.Message != nil
		if err == nil {
			if isPress {
				s.forgetPress(s.ctx, pressPrefix+i.ID)
			}
			return
		}
		text := strings.ReplaceAll(s.api.redact(err), i.Token, "<token>")
		s.log.Info("an interaction was not answered in time; what it says is stored", "error", text)
		if isPress {
			s.removeButtonsOf(s.ctx, pressPrefix+i.ID, press{Channel: i.ChannelID, Message: i.Message.ID})
		}
	})
}

// press is a press whose buttons are still to be removed. It is stored with the press.
type press struct {
	Channel string `json:"channel"`
	Message string `json:"message"`
}

const pressPrefix = "press/"

// removeButtons removes the buttons of the messages whose presses were stored by a process
// that ended before it could remove them.
func (s *session) removeButtons(ctx context.Context) error {
	left := map[string]press{}
	err := s.kernel.Scan(ctx, pressPrefix, func(v sdk.Value) error {
		var p press
		if err := v.Decode(&p); err != nil {
			s.log.Error("decode a press", "key", v.Key, "error", err)
		}
		left[v.Key] = p
		return nil
	})
	if err != nil {
		return err
	}
	for key, p := range left {
		s.answers.Go(func() { s.removeButtonsOf(s.ctx, key, p) })
	}
	return nil
}

// removeButtonsOf removes the buttons of a message, with retries, and forgets the press.
func (s *session) removeButtonsOf(ctx context.Context, key string, p press) {
	for n := 1; p.Message != ""; n++ {
		err := s.api.do(ctx, request{
			method: http.MethodPatch, path: messagesOf(target(p.Channel)) + "/" + p.Message,
			body: map[string]any{"components": []component{}},
		}, nil)
		kind, wait := classify(err)
		if err == nil || kind == refused {
			break
		}
		s.log.Info("remove the buttons of a message; it is tried again", "error", s.api.redact(err))
		if kind != limited {
			wait = pause.Backoff(n)
		}
		if !pause.For(ctx, wait) {
			return
		}
	}
	s.forgetPress(ctx, key)
}

func (s *session) forgetPress(ctx context.Context, key string) {
	if _, err := s.kernel.Commit(ctx, sdk.Delete(key)); err != nil && ctx.Err() == nil {
		s.log.Warn("forget a press", "error", err)
	}
}
