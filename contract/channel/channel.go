// Package channel describes what a channel can show, and makes messages fit that.
package channel

import (
	"slices"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/ask"
	"github.com/switchboard-run/switchboard/contract/words"
)

// Spec says what a channel can do, and whom it admits.
type Spec struct {
	MaxLength int // of one message, in UTF-16 units; 0: no limit
	Formats   []string
	Dedupe    time.Duration // how long a message id is shown only once
	Drafts    bool          // shows text that is being written
	Actions   bool          // shows buttons; in others their commands stand in the text
	Local     bool          // only the owner can reach it: everyone on it is admitted
	AllowFrom []string      // user ids admitted without pairing; "*": everyone
	// Attachments are the kinds of files that it sends, and MaxAttachment the size of the
	// largest, in bytes; 0: no limit. Others are named in the text.
	Attachments   []string
	MaxAttachment int64
	// HoldUncertain keeps a send with an unknown outcome for the owner instead of
	// repeating it.
	HoldUncertain bool
}

// Fit leaves in a message the files that the channel sends, if need be as documents. The
// text names the others, in the language of the recipient, and the commands of buttons
// that the channel doesn't show.
func (s *Spec) Fit(language string, m contract.ChannelSend) contract.ChannelSend {
	if !s.Actions {
		m.Text, m.Actions = ask.Typed(m.Text, m.Actions), nil
	}
	files := m.Attachments
	m.Attachments = nil
	for _, a := range files {
		kind := a.Kind
		if !slices.Contains(s.Attachments, kind) {
			kind = contract.KindDocument
		}
		if slices.Contains(s.Attachments, kind) && (s.MaxAttachment == 0 || a.Size <= s.MaxAttachment) {
			a.Kind = kind
			m.Attachments = append(m.Attachments, a)
			continue
		}
		m.Text += "\n" + words.Say(language, "%s can't be sent here.", a.Reference())
	}
	return m
}
