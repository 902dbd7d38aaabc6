package offline

import (
	"strings"

	"github.com/switchboard-run/switchboard/contract"
)

// fileNote begins what the run loop adds to a message whose image it cannot show.
const fileNote = "\n\n[note from switchboard]\n"

// withoutFiles returns a text without the references to the files that came with it.
func withoutFiles(text string) (rest string, files bool) {
	rest, _, files = strings.Cut(text, fileNote)
	var lines []string
	for line := range strings.Lines(rest) {
		if isReference(line) {
			files = true
			continue
		}
		lines = append(lines, line)
	}
	return strings.TrimSpace(strings.Join(lines, "")), files
}

func isReference(line string) bool {
	_, err := contract.ParseReference(line)
	return err == nil && strings.HasPrefix(line, "[")
}

// typed returns a text with what is said in voice messages, as if it was typed.
func typed(text string) string {
	if !strings.Contains(text, contract.SpokenMark) {
		return text
	}
	var lines []string
	for line := range strings.Lines(text) {
		if before, said, spoken := strings.Cut(line, contract.SpokenMark); spoken && isReference(before) {
			line = said
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "")
}

// person answers what a person wrote. Files are only named: this model looks at none.
func (d dialog) person() reply {
	text, files := withoutFiles(d.text)
	if !files {
		return d.act(d.read())
	}
	words := text
	for i := len(d.past) - 1; i >= 0 && words == ""; i-- {
		words, _ = withoutFiles(d.past[i].said)
	}
	blind := say(phrasesFor(words).text("no_files"))
	if text == "" {
		return blind
	}
	d.text = text
	if a := d.act(d.read()); len(a.calls) > 0 || !a.aside {
		return a
	}
	return blind
}
