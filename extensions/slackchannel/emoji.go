package slackchannel

import (
	"strings"
	"sync"
)

// emojis are the reactions that people use most, by Slack's names of them.
var emojis = sync.OnceValue(func() map[string]string {
	return map[string]string{
		"+1": "👍", "thumbsup": "👍", "-1": "👎", "thumbsdown": "👎", "heart": "❤️", "joy": "😂", "smile": "😄",
		"smiley": "😃", "grinning": "😀", "slightly_smiling_face": "🙂", "laughing": "😆", "wink": "😉", "blush": "😊",
		"heart_eyes": "😍", "thinking_face": "🤔", "open_mouth": "😮", "cry": "😢", "sob": "😭", "angry": "😠", "rage": "😡",
		"fire": "🔥", "tada": "🎉", "clap": "👏", "pray": "🙏", "raised_hands": "🙌", "wave": "👋", "ok_hand": "👌",
		"muscle": "💪", "eyes": "👀", "rocket": "🚀", "star": "⭐", "100": "💯", "white_check_mark": "✅",
		"heavy_check_mark": "✔️", "x": "❌", "question": "❓", "exclamation": "❗", "warning": "⚠️", "bulb": "💡",
		"calendar": "📆", "alarm_clock": "⏰", "hourglass": "⌛", "sunglasses": "😎", "sweat_smile": "😅",
		"disappointed": "😞", "confused": "😕", "neutral_face": "😐", "shrug": "🤷", "facepalm": "🤦", "handshake": "🤝",
		"point_up": "☝️", "party_parrot": "🦜", "broken_heart": "💔", "sparkles": "✨", "coffee": "☕", "zap": "⚡",
	}
})

// emoji returns a reaction as a character; one that is not known, such as one of the
// workspace, as its name.
func emoji(name string) string {
	plain, _, _ := strings.Cut(name, "::") // the tone of the skin
	if e, ok := emojis()[plain]; ok {
		return e
	}
	return ":" + plain + ":"
}
