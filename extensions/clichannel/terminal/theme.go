package terminal

import (
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/extensions/clichannel/terminal/markdown"
	"github.com/switchboard-run/switchboard/extensions/clichannel/wire"
)

// theme formats messages for the screen.
type theme struct {
	color    bool
	language string // of the person
}

const indent = "  "

func (t theme) paint(codes, s string) string {
	if !t.color || s == "" {
		return s
	}
	return "\x1b[" + codes + "m" + s + "\x1b[0m"
}

func (t theme) faint(s string) string   { return t.paint("2", markdown.Clean(s)) }
func (t theme) failure(s string) string { return t.paint("31", "✗ ") + markdown.Clean(s) }

// prompt returns the prompt of the edited line.
func (t theme) prompt(conversation string) string {
	if conversation != "" {
		conversation = t.faint(conversation) + " "
	}
	return conversation + t.paint("1;36", "›") + " "
}

func (t theme) welcome(f wire.Frame, width int) []string {
	const name = "Switchboard"
	text := name
	if f.Text != "" {
		text += " · " + f.Text
	}
	var lines []string
	for i, l := range markdown.Text(text, width) {
		if rest, first := strings.CutPrefix(l, name); first && i == 0 {
			lines = append(lines, t.paint("1", name)+t.faint(rest))
			continue
		}
		lines = append(lines, t.faint(l))
	}
	for _, l := range markdown.Text(f.Hint, width) {
		if l != "" {
			lines = append(lines, t.faint(l))
		}
	}
	return append(lines, "")
}

// ownMessage formats a message of the user that replaces the edited line.
func (t theme) ownMessage(text string, width int) []string {
	return t.block(t.paint("1;36", "›"), markdown.Text(text, width-2))
}

// echo formats a message from another terminal.
func (t theme) echo(f wire.Frame, width int) []string {
	lines := markdown.Text(f.Text, width-2)
	for _, a := range f.Attachments {
		lines = append(lines, a.Reference())
	}
	for i, l := range lines {
		lines[i] = t.faint(l)
	}
	return t.block(t.paint("36", "»"), lines)
}

func (t theme) answer(f wire.Frame, width int) []string {
	sign := t.paint("32", "●")
	if f.Part > 1 {
		sign = " "
	}
	lines := append(markdown.Render(f.Text, width-2, t.color), t.files(f.Attachments)...)
	lines = append(lines, t.actions(f, width-2)...)
	if f.Repeat {
		lines = append(lines, t.faint(words.Say(t.language, "(may have been shown before)")))
	}
	lines = t.block(sign, lines)
	if f.Last() {
		lines = append(lines, "")
	}
	return lines
}

func (t theme) notice(f wire.Frame, width int) []string {
	lines := append(markdown.Render(f.Text, width-2, t.color), t.files(f.Attachments)...)
	lines = append(lines, t.actions(f, width-2)...)
	return append(t.block(t.paint("1;33", "◆"), lines), "")
}

// files names the files of a message, and how to save them.
func (t theme) files(all []contract.Attachment) (lines []string) {
	for _, a := range all {
		line := markdown.Clean(a.Reference())
		if a.Blob != "" {
			line += t.faint(" " + sizeText(a.Size) + " · /save " + a.Blob[:min(len(a.Blob), contract.ReferenceDigits)])
		}
		lines = append(lines, line)
	}
	return lines
}

// draft formats the end of an unfinished text.
func (t theme) draft(text string, width, rows int) []string {
	lines := t.block(t.paint("2;32", "●"), markdown.Render(text, width-3, t.color))
	if len(lines) > rows {
		lines = append([]string{t.faint(indent + "…")}, lines[len(lines)-rows+1:]...)
	}
	return lines
}

// block puts sign before the first line and indents the others.
func (t theme) block(sign string, lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		switch {
		case i == 0:
			out[i] = sign + " " + l
		case l != "":
			out[i] = indent + l
		}
	}
	return out
}

// truncate shortens live lines to one row each.
func (t theme) truncate(lines []string, width int) []string {
	for i, l := range lines {
		if bare := stripSequences(l); markdown.Width(bare) >= width {
			short := markdown.Text(bare, width-2)
			lines[i] = t.faint(short[0] + "…")
		}
	}
	return lines
}
