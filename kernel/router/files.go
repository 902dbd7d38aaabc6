package router

import (
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/ask"
	"github.com/switchboard-run/switchboard/contract/words"
)

// unread are the kinds of the attachments whose files the channel did not store. What a
// location or a contact says is in its name.
func (q request) unread() (kinds []string) {
	for _, a := range q.Attachments {
		if a.Blob == "" && a.Kind != contract.KindLocation && a.Kind != contract.KindContact {
			kinds = append(kinds, q.say(strings.ReplaceAll(a.Kind, "_", " ")))
		}
	}
	return kinds
}

// fit leaves the files that a channel sends, if need be as documents, and names the others
// and the commands of buttons that it doesn't show in the text.
func fit(to *place, m contract.ChannelSend) contract.ChannelSend {
	if !to.channel.Actions {
		m.Text, m.Actions = ask.Typed(m.Text, m.Actions), nil
	}
	files := m.Attachments
	m.Attachments = nil
	for _, a := range files {
		c := to.channel
		kind := a.Kind
		if !slices.Contains(c.Attachments, kind) {
			kind = contract.KindDocument
		}
		if slices.Contains(c.Attachments, kind) && (c.MaxAttachment == 0 || a.Size <= c.MaxAttachment) {
			a.Kind = kind
			m.Attachments = append(m.Attachments, a)
			continue
		}
		m.Text += "\n" + words.Say(to.language, "%s can't be sent here.", a.Reference())
	}
	return m
}
