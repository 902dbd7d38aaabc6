package slacktest

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Limits of blocks.
const (
	maxBlocks      = 50
	maxSection     = 3_000
	maxMarkdown    = 12_000
	maxButtons     = 25
	maxLabel       = 75
	maxValue       = 2_000
	maxActionID    = 255
	maxBlocksText  = 13_000
	tooLong        = "msg_blocks_too_long"
	maxHeader      = 150
	maxListIndent  = 8
	preformatted   = "rich_text_preformatted"
	richTextList   = "rich_text_list"
	richTextInline = "rich_text_section"
)

type blockJSON struct {
	Type     string          `json:"type"`
	BlockID  string          `json:"block_id"`
	Text     json.RawMessage `json:"text"`
	Elements []elementJSON   `json:"elements"`
}

type elementJSON struct {
	Type     string          `json:"type"`
	Text     json.RawMessage `json:"text"`
	URL      string          `json:"url"`
	ActionID string          `json:"action_id"`
	Value    string          `json:"value"`
	Style    json.RawMessage `json:"style"`
	Indent   int             `json:"indent"`
	Elements []elementJSON   `json:"elements"`
}

// checker looks through the blocks of a message.
type checker struct {
	said     strings.Builder
	buttons  []Button
	actions  map[string]bool
	problems []string
}

func (c *checker) bad(format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

// checkBlocks returns what people see of blocks, and their buttons.
func checkBlocks(raw []byte) (said string, buttons []Button, problems []string) {
	var blocks []blockJSON
	if err := json.Unmarshal(raw, &blocks); err != nil {
		return "", nil, []string{"[ERROR] failed to parse blocks: " + err.Error()}
	}
	c := &checker{actions: map[string]bool{}}
	if len(blocks) > maxBlocks {
		c.bad("[ERROR] no more than %d items allowed [json-pointer:/blocks]", maxBlocks)
	}
	for i, b := range blocks {
		c.block(fmt.Sprintf("/blocks/%d", i), b)
	}
	if said = strings.TrimRight(c.said.String(), "\n"); utf8.RuneCountInString(said) > maxBlocksText {
		return "", nil, []string{tooLong}
	}
	return said, c.buttons, c.problems
}

func (c *checker) block(at string, b blockJSON) {
	switch b.Type {
	case "rich_text":
		if len(b.Elements) == 0 {
			c.bad("[ERROR] must have at least one element [json-pointer:%s/elements]", at)
		}
		for i, e := range b.Elements {
			c.part(fmt.Sprintf("%s/elements/%d", at, i), e)
		}
	case "section", "header", "context":
		limit := maxSection
		if b.Type == "header" {
			limit = maxHeader
		}
		var t struct{ Type, Text string }
		if json.Unmarshal(b.Text, &t) != nil && b.Type != "context" || t.Type == "" && b.Type != "context" {
			c.bad("[ERROR] missing required field: text [json-pointer:%s]", at)
		}
		if n := utf8.RuneCountInString(t.Text); n > limit {
			c.bad("[ERROR] must be less than %d characters [json-pointer:%s/text/text]", limit+1, at)
		}
		c.said.WriteString(unescape(t.Text) + "\n")
	case "markdown":
		var text string
		if json.Unmarshal(b.Text, &text) != nil || text == "" || utf8.RuneCountInString(text) > maxMarkdown {
			c.bad("[ERROR] invalid markdown text [json-pointer:%s/text]", at)
		}
		c.said.WriteString(text + "\n")
	case "divider":
		c.said.WriteString("\n")
	case "actions":
		if n := len(b.Elements); n < 1 || n > maxButtons {
			c.bad("[ERROR] no more than %d and no less than 1 items allowed [json-pointer:%s/elements]", maxButtons, at)
		}
		for i, e := range b.Elements {
			c.button(fmt.Sprintf("%s/elements/%d", at, i), b.BlockID, e)
		}
	default:
		c.bad("[ERROR] unsupported type: %s [json-pointer:%s/type]", b.Type, at)
	}
}

func (c *checker) button(at, block string, e elementJSON) {
	var label struct{ Type, Text string }
	_ = json.Unmarshal(e.Text, &label)
	n := utf8.RuneCountInString(label.Text)
	switch {
	case e.Type != "button":
		c.bad("[ERROR] unsupported type: %s [json-pointer:%s/type]", e.Type, at)
	case label.Type != "plain_text" || n < 1 || n > maxLabel:
		c.bad("[ERROR] must be plain_text of 1 to %d characters [json-pointer:%s/text]", maxLabel, at)
	case len(e.Value) > maxValue, len(e.ActionID) > maxActionID, e.ActionID == "":
		c.bad("[ERROR] invalid value or action_id [json-pointer:%s]", at)
	case c.actions[block+"/"+e.ActionID]:
		c.bad("[ERROR] `action_id` must be unique [json-pointer:%s/action_id]", at)
	}
	c.actions[block+"/"+e.ActionID] = true
	c.buttons = append(c.buttons, Button{ActionID: e.ActionID, BlockID: block, Label: label.Text, Value: e.Value})
}

// part is a paragraph, list, quote or code block of a rich text.
func (c *checker) part(at string, e elementJSON) {
	switch e.Type {
	case richTextList:
		var style string
		if json.Unmarshal(e.Style, &style) != nil || style != "ordered" && style != "bullet" || e.Indent > maxListIndent {
			c.bad("[ERROR] invalid list [json-pointer:%s]", at)
		}
		for i, item := range e.Elements {
			if item.Type != richTextInline {
				c.bad("[ERROR] unsupported type: %s [json-pointer:%s/elements/%d]", item.Type, at, i)
			}
			mark := "• "
			if style == "ordered" {
				mark = fmt.Sprintf("%d. ", i+1)
			}
			c.said.WriteString(strings.Repeat("  ", e.Indent) + mark)
			c.inlines(fmt.Sprintf("%s/elements/%d", at, i), item)
			c.said.WriteString("\n")
		}
	case richTextInline, "rich_text_quote", preformatted:
		c.inlines(at, e)
		if !strings.HasSuffix(c.said.String(), "\n") {
			c.said.WriteString("\n")
		}
	default:
		c.bad("[ERROR] unsupported type: %s [json-pointer:%s/type]", e.Type, at)
	}
	if len(e.Elements) == 0 {
		c.bad("[ERROR] must have at least one element [json-pointer:%s/elements]", at)
	}
}

func (c *checker) inlines(at string, e elementJSON) {
	for i, part := range e.Elements {
		at := fmt.Sprintf("%s/elements/%d", at, i)
		var text string
		if part.Text != nil && json.Unmarshal(part.Text, &text) != nil {
			c.bad("[ERROR] invalid text [json-pointer:%s/text]", at)
		}
		switch part.Type {
		case "text":
			if text == "" {
				c.bad("[ERROR] must be more than 0 characters [json-pointer:%s/text]", at)
			}
		case "link":
			if !strings.Contains(part.URL, ":") || strings.ContainsAny(part.URL, " <>") {
				c.bad("[ERROR] invalid url [json-pointer:%s/url]", at)
			}
			if e.Type == preformatted && string(part.Style) != "" {
				c.bad("[ERROR] invalid additional property: style [json-pointer:%s]", at)
			}
			if text == "" {
				text = part.URL
			}
		case "emoji", "user", "channel", "broadcast":
			text = "<" + part.Type + ">"
		default:
			c.bad("[ERROR] unsupported type: %s [json-pointer:%s/type]", part.Type, at)
		}
		c.said.WriteString(text)
	}
}
