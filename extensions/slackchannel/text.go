package slackchannel

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/switchboard-run/switchboard/contract"
)

var errNoMessage = errors.New("there is no such message")

// maxInput is above Slack's limit of a message, and far below the limit of an event.
const maxInput = 64 << 10

// reference is what Slack's texts have in angle brackets: a person, a conversation, a
// command such as !here, or a link, each perhaps with a label.
var reference = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`<([@#!]?)([^<>|]*)(?:\|([^<>]*))?>`)
})

var unescape = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")

// readable returns a text of Slack for people.
func (n *names) readable(ctx context.Context, text string) string {
	var out strings.Builder
	at := 0
	for _, m := range reference().FindAllStringSubmatchIndex(text, -1) {
		out.WriteString(unescape.Replace(text[at:m[0]]))
		kind, name, label := text[m[2]:m[3]], text[m[4]:m[5]], ""
		if m[6] >= 0 {
			label = text[m[6]:m[7]]
		}
		out.WriteString(unescape.Replace(n.refer(ctx, kind, name, label)))
		at = m[1]
	}
	out.WriteString(unescape.Replace(text[at:]))
	return out.String()
}

func (n *names) refer(ctx context.Context, kind, name, label string) string {
	switch kind {
	case "@":
		if label == "" {
			label = n.person(ctx, name).name
		}
		return "@" + label
	case "#":
		if label != "" {
			return "#" + label
		}
		if found := n.conversation(ctx, name); found != "" {
			return found
		}
		return "#" + name
	case "!":
		if label != "" {
			return label
		}
		name, _, _ = strings.Cut(name, "^")
		return "@" + name
	}
	switch name = strings.TrimPrefix(name, "mailto:"); label {
	case "", name:
		return name
	default:
		return label + " (" + name + ")"
	}
}

// withoutMention removes the mentions of the bot from a text, and the separators around
// one at its beginning.
func withoutMention(text, bot string) (rest string, mentioned bool) {
	mention := regexp.MustCompile(`<@` + regexp.QuoteMeta(bot) + `(\|[^<>]*)?>`)
	found := mention.FindAllStringIndex(text, -1)
	if len(found) == 0 {
		return strings.TrimSpace(text), false
	}
	var out strings.Builder
	at := 0
	for _, m := range found {
		before := text[at:m[0]]
		if strings.HasSuffix(out.String(), " ") {
			before = strings.TrimPrefix(before, " ")
		}
		out.WriteString(before)
		at = m[1]
	}
	tail := text[at:]
	if strings.TrimSpace(out.String()) == "" {
		tail = strings.TrimLeft(tail, " ,:;.!-–—\n")
	} else if strings.HasSuffix(out.String(), " ") {
		tail = strings.TrimPrefix(tail, " ")
	}
	return strings.TrimSpace(out.String() + tail), true
}

// truncateInput shortens a text to fit into an event, with a note.
func truncateInput(text string) string {
	return contract.Truncate(text, maxInput, fmt.Sprintf("\n[truncated: the message has %d bytes]", len(text)))
}

// languageOf returns the language of a locale such as en-US.
func languageOf(locale string) string {
	language, _, _ := strings.Cut(locale, "-")
	return language
}
