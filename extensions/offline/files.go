package offline

import (
	"strings"

	"github.com/switchboard-run/switchboard/contract"
)

// fileNote begins what the run loop adds to a message whose image it cannot show.
const fileNote = "\n\n[note from switchboard]\n"

// withoutFiles returns a text without the references to the files that came with it. There
// may be files without references: they could not be stored.
func withoutFiles(text string) (rest string, references []string, files bool) {
	rest, _, files = strings.Cut(text, fileNote)
	var lines []string
	for line := range strings.Lines(rest) {
		if isReference(line) {
			references = append(references, strings.TrimSpace(line))
			continue
		}
		lines = append(lines, line)
	}
	return strings.TrimSpace(strings.Join(lines, "")), references, files || len(references) > 0
}

// meantFiles returns the files that "this" means: those of the message or, if it has none,
// of a message before it that was nothing else.
func (d dialog) meantFiles() []string {
	if last := d.lastPast(); len(d.files) == 0 && last.said == "" {
		return last.files
	}
	return d.files
}

// fileText is the text of a reminder of files.
func (w phrases) fileText(references []string) string {
	var names []string
	for _, r := range references {
		if a, err := contract.ParseReference(r); err == nil && a.Name != "" {
			names = append(names, a.Name)
		}
	}
	if len(names) == 0 {
		return w.text("look_at_this")
	}
	return strings.Join(names, ", ")
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
	text, references, files := withoutFiles(d.text)
	if !files {
		r := d.read()
		return d.act(r)
	}
	words := text
	for i := len(d.past) - 1; i >= 0 && words == ""; i-- {
		words = d.past[i].said
	}
	blind := say(phrasesFor(words).text("no_files"))
	if text == "" {
		return blind
	}
	d.text, d.files = text, references
	r := d.read()
	if a := d.act(r); len(a.calls) > 0 || !a.aside {
		return a
	}
	return blind
}
