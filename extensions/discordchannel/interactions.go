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
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/httpcall"
)

// Kinds of answers to an interaction.
const (
	answerMessage = 4
	answerLater   = 6 // the message of the button does not change now
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
	p := &pendingMessage{Dedupe: "i/" + i.ID}
	if i.Type == interactionComponent && i.Message != nil {
		p.Press = &press{ID: i.ID, Channel: i.ChannelID, Message: i.Message.ID}
	}
	p.stored = func(state storedState) { s.answer(i, p, state) } //nolint:contextcheck // outlives this call
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

// storedState is what became of a message when it was stored.
type storedState int

const (
	published storedState = iota
	waiting               // for the files of messages before it
	rejected              // its person is not admitted
)

// answer answers an interaction: a press by removing the buttons, unless they are not for
// its person. It does not delay the events that follow.
func (s *session) answer(i interaction, m *pendingMessage, state storedState) {
	say := func(text string) map[string]any {
		return map[string]any{"type": answerMessage, "data": map[string]any{"content": text, "flags": flagEphemeral}}
	}
	body := say(commandTaken)
	switch {
	case i.Type != interactionComponent:
	case state == rejected:
		body = say(words.Say(m.Message.Language, "You can't use these buttons, because I don't know you yet."))
	case state == waiting:
		body = map[string]any{"type": answerLater}
	default:
		body = map[string]any{"type": answerUpdate, "data": map[string]any{"components": []component{}}}
	}
	s.presses.running.Go(func() {
		ctx, cancel := context.WithTimeout(s.ctx, httpcall.Timeout)
		defer cancel()
		err := s.api.do(ctx, request{
			method: http.MethodPost, path: "/interactions/" + i.ID + "/" + i.Token + "/callback", body: body, free: true,
		}, nil)
		if err != nil {
			text := strings.ReplaceAll(s.api.redact(err), i.Token, "<token>")
			s.log.Info("an interaction was not answered in time; what it says is stored", "error", text)
		}
		switch {
		case m.Press == nil || state == waiting:
		case state == published && err != nil:
			s.presses.removeButtons(s.ctx, m.Press)
		default:
			s.presses.forget(s.ctx, m.Press)
		}
	})
}
