package grammar

import (
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/extensions/offline/pattern"
)

var (
	taskChannel = pattern.New(`(?i)\(\s*(?:channel|канал)\s*[:=]\s*([^)]{1,64}?)\s*\)`)
	taskPrefix  = pattern.New(`(?i)^\s*(?:(?:pending |due |overdue )?(?:reminder|task)|напоминание|задача)` +
		`\s*(?::|-|–|—)?\s*`)
	taskUser = pattern.New(`(?i)^(?:(?:the )?user (?:asked|wants|wanted) (?:to be reminded|a reminder` +
		`|me to remind (?:him|her|them))|remind (?:the )?user|пользователь (?:просил|попросил|просит)` +
		` (?:его )?напомнить(?: ему)?|напомнить пользователю)\s*`)
	taskAbout = pattern.New(`(?i)^(?:about|of|to|that|что)\s+`)
)

// ParseTask parses the prompt of a task from another part of the assistant
// ("Pending reminder (channel: telegram_channel): turn off the kettle",
// "Pending reminder: user asked to be reminded in Telegram about the kettle")
// into the text for the person and its channel. It reports false unless the
// prompt names exactly one channel.
func ParseTask(prompt string, names ...string) (Intent, bool) {
	if len(prompt) > maxLength {
		return Intent{}, false
	}
	text, said := prompt, ""
	if m := taskChannel.FindStringSubmatchIndex(text); m != nil {
		said = text[m[2]:m[3]]
		text = text[:m[0]] + text[m[1]:]
		if taskChannel.MatchString(text) {
			return Intent{}, false
		}
	} else {
		s := newScan(text, time.Time{}, names)
		for i := range s.toks {
			c, ok := s.channel(i)
			if !ok || c.said == "" {
				continue
			}
			if said != "" {
				return Intent{}, false
			}
			said = c.said
			text = strings.TrimSpace(s.text[:s.toks[i].start]) + " " + strings.TrimSpace(s.text[s.toks[c.end-1].end:])
		}
		if said == "" {
			return Intent{}, false
		}
	}
	text = taskPrefix.ReplaceAllString(text, "")
	if t := taskUser.ReplaceAllString(text, ""); t != text {
		text = taskAbout.ReplaceAllString(t, "")
	}
	text = strings.Trim(strings.Join(strings.Fields(text), " "), " .:;,-–—")
	if text == "" {
		return Intent{}, false
	}
	return Intent{Do: "send", Text: text, Channel: said}, true
}
