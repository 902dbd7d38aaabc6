package slackchannel

import (
	"fmt"
	"strings"

	"github.com/slack-go/slack"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/slackchannel/markup"
)

const (
	// maxText is how much of a message is in its text, which notifications show, after
	// escaping. An edit takes 4,000 characters.
	maxText = 3900
	// maxLabel is the length of a button's label, maxRow how many buttons a block has.
	maxLabel = 75
	maxRow   = 25
	// actionPrefix begins the ids of buttons.
	actionPrefix = "press-"
)

// rendered is a message for Slack.
type rendered struct {
	text   string // escaped
	blocks []slack.Block
	plain  bool
}

// render formats a text; a text that cannot be formatted stays plain.
func render(source string, actions []contract.Action) (said rendered) {
	defer func() {
		if recover() != nil {
			said = plainly(source, actions)
		}
	}()
	elements, text := markup.Render(source)
	if len(elements) == 0 {
		return plainly(source, actions)
	}
	return rendered{
		text: escape(text), blocks: append([]slack.Block{slack.NewRichTextBlock("", elements...)}, buttons(actions)...),
	}
}

// plainly shows a text as it is.
func plainly(source string, actions []contract.Action) rendered {
	said := rendered{text: escape(source), plain: true, blocks: []slack.Block{}}
	if strings.TrimSpace(source) != "" {
		said.blocks = append(said.blocks, slack.NewRichTextBlock("",
			slack.NewRichTextSection(slack.NewRichTextSectionTextElement(source, nil))))
	}
	said.blocks = append(said.blocks, buttons(actions)...)
	return said
}

var escapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// escape returns the beginning of a text, with what Slack would read as a reference
// escaped.
func escape(text string) string {
	var out strings.Builder
	left := maxText
	for _, r := range text {
		one := escapes.Replace(string(r))
		if left -= len([]rune(one)); left < 0 {
			break
		}
		out.WriteString(one)
	}
	return out.String()
}

// buttons returns the blocks with the actions of a message.
func buttons(actions []contract.Action) (blocks []slack.Block) {
	for row := 0; row < len(actions); row += maxRow {
		var elements []slack.BlockElement
		for i, a := range actions[row:min(row+maxRow, len(actions))] {
			label := []rune(a.Label)
			if len(label) > maxLabel {
				label = append(label[:maxLabel-1], '…')
			}
			if len(label) == 0 {
				label = []rune(a.Command)
			}
			elements = append(elements, slack.NewButtonBlockElement(fmt.Sprint(actionPrefix, row+i), a.Command,
				slack.NewTextBlockObject(slack.PlainTextType, string(label), false, false)))
		}
		blocks = append(blocks, slack.NewActionBlock("", elements...))
	}
	return blocks
}
