package command

import (
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/words"
)

// answerOf returns a result as an answer to a person, in their language: its text, or
// its content.
func answerOf(r *extensionv1.CallResult, language string) string {
	text := r.GetText()
	if text == "" {
		text = prose(r.GetContent())
	}
	if text = strings.TrimSpace(text); text == "" {
		return words.Say(language, "Done.")
	}
	if r.GetIsError() {
		return sentence(text, language)
	}
	return text
}

// prose makes a content that was written for a model readable for people: the value of
// a JSON string, the field text of an object, or the JSON as code.
func prose(content string) string {
	var value any
	if json.Unmarshal([]byte(content), &value) != nil {
		return content
	}
	switch v := value.(type) {
	case string:
		return v
	case map[string]any:
		if text, ok := v["text"].(string); ok {
			return text
		}
	case []any:
	default:
		return content
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if e.Encode(json.RawMessage(content)) != nil {
		return content
	}
	return "```json\n" + b.String() + "```"
}

// sentence translates an error's text, capitalizes it and adds a period.
func sentence(s, language string) string {
	s = strings.TrimSpace(words.Translate(language, strings.TrimSpace(s)))
	first, size := utf8.DecodeRuneInString(s)
	if size == 0 {
		return words.Say(language, "That didn't work.")
	}
	if s = string(unicode.ToUpper(first)) + s[size:]; !strings.ContainsAny(s[len(s)-1:], ".!?:`") {
		s += "."
	}
	return s
}
