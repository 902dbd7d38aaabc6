package telegramchannel

import (
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/go-telegram/bot/models"
)

// addressedText is a text without the bot's name.
type addressedText struct {
	text       string
	named      bool // the bot is mentioned, or a command names it
	forAnother bool // a command names another bot
}

// parseAddress removes the bot's name from a text: a mention is removed, and
// /stop@thebot becomes /stop. A text that would become empty is kept.
func parseAddress(text string, entities []models.MessageEntity, me *models.User) addressedText {
	var h addressedText
	units := utf16.Encode([]rune(text))
	var cuts [][2]int
	for _, e := range entities {
		from, to := e.Offset, e.Offset+e.Length
		if from < 0 || to > len(units) || from >= to {
			continue
		}
		part := string(utf16.Decode(units[from:to]))
		switch e.Type {
		case models.MessageEntityTypeMention:
			if strings.EqualFold(part, "@"+me.Username) {
				h.named = true
				cuts = append(cuts, [2]int{from, to})
			}
		case models.MessageEntityTypeTextMention:
			if e.User != nil && e.User.ID == me.ID {
				h.named = true
				cuts = append(cuts, [2]int{from, to})
			}
		case models.MessageEntityTypeBotCommand:
			_, name, addressed := strings.Cut(part, "@")
			switch {
			case !addressed:
			case strings.EqualFold(name, me.Username):
				h.named = true
				cuts = append(cuts, [2]int{to - len(name) - 1, to})
			case from == 0:
				h.forAnother = true
			}
		default:
		}
	}
	h.text = strings.TrimSpace(text)
	if rest := cutRanges(units, cuts); rest != "" {
		h.text = rest
	}
	if h.text == "/start" || strings.HasPrefix(h.text, "/start ") {
		h.text = "/help" // Telegram sends /start when a person opens the bot
	}
	return h
}

// cutRanges returns a text without some ranges, and without the separators around them.
func cutRanges(units []uint16, cuts [][2]int) string {
	if len(cuts) == 0 {
		return strings.TrimSpace(string(utf16.Decode(units)))
	}
	slices.SortFunc(cuts, func(a, b [2]int) int { return a[0] - b[0] })
	var out strings.Builder
	at := 0
	for _, cut := range cuts {
		if cut[0] < at {
			continue
		}
		before := string(utf16.Decode(units[at:cut[0]]))
		if at == 0 || !strings.HasSuffix(out.String(), " ") {
			out.WriteString(before)
		} else {
			out.WriteString(strings.TrimPrefix(before, " "))
		}
		at = cut[1]
	}
	rest := string(utf16.Decode(units[at:]))
	if s := out.String(); strings.TrimSpace(s) == "" {
		rest = strings.TrimLeft(rest, " ,:;.!-–—\n")
	} else if strings.HasSuffix(s, " ") {
		rest = strings.TrimPrefix(rest, " ")
	}
	out.WriteString(rest)
	return strings.TrimSpace(out.String())
}
