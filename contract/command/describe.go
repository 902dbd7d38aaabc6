package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"github.com/switchboard-run/switchboard/contract/words"
)

// maxShown is how many characters of the arguments, or of a description, a person sees.
const maxShown = 1500

// DescribeCall tells a person in their language which call of a tool an agent wants to
// make. No text of the call can pass for another part of it.
func DescribeCall(language, agent, tool, description string, arguments []byte) string {
	shown := readable(language, listed(arguments))
	fence := "```"
	for strings.Contains(shown, fence) {
		fence += "`"
	}
	what := tool + ":"
	if description != "" {
		what += "\n" + readable(language, words.Say(language, summary(description)))
	}
	return words.Say(language, "%s wants to run %s\n\n%s", agent, what, fence+"\n"+shown+"\n"+fence)
}

// summary is the first sentence of a description.
func summary(description string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(description), "\n")
	first, _, cut := strings.Cut(line, ". ")
	if cut {
		first += "."
	}
	return first
}

// listed formats arguments for people, a line for each. The lines of a longer text
// are indented, so none can pass for another argument.
func listed(raw []byte) string {
	in := json.NewDecoder(bytes.NewReader(raw))
	if t, err := in.Token(); err != nil || t != json.Delim('{') {
		return string(raw)
	}
	var lines []string
	for in.More() {
		var value json.RawMessage
		name, err := in.Token()
		if err != nil || in.Decode(&value) != nil {
			return string(raw)
		}
		var text string
		if json.Unmarshal(value, &text) != nil || strings.TrimSpace(text) == "" {
			text = string(value)
		}
		lines = append(lines, strings.ReplaceAll(fmt.Sprintf("%v: %s", name, text), "\n", "\n    "))
	}
	return strings.Join(lines, "\n")
}

// readable escapes what hides or reorders other characters, and cuts to maxShown.
func readable(language, text string) string {
	var b strings.Builder
	all := []rune(text)
	for _, c := range all[:min(len(all), maxShown)] {
		if c != '\n' && !unicode.IsPrint(c) {
			fmt.Fprintf(&b, "\\u%04x", c)
		} else {
			b.WriteRune(c)
		}
	}
	if more := len(all) - maxShown; more > 0 {
		b.WriteString("\n" + words.Count(language, "... and %d more character that is not shown",
			"... and %d more characters that are not shown", more, more))
	}
	return b.String()
}
