package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/extensions/clichannel/terminal/markdown"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

// body prints a text, indented.
func (p *printer) body(s, by string) { p.line("%s", p.broken(s, by)) }

// broken indents a text, and wraps its lines on a terminal.
func (p *printer) broken(s, by string) string {
	s = strings.TrimRight(s, "\n")
	if p.width > 0 {
		s = strings.Join(markdown.Text(s, p.width-len(by)), "\n")
	}
	return indent(s, by)
}

// wrapped prints a line, wrapped on a terminal; continuation lines are indented.
func (p *printer) wrapped(c paint, s, by string) {
	if p.width == 0 {
		p.line("%s", p.paint(c, s))
		return
	}
	for i, l := range markdown.Text(oneLine(s), p.width-len(by)) {
		if i > 0 {
			l = by + l
		}
		p.line("%s", p.paint(c, l))
	}
}

// age formats the time since t, in one unit.
func age(t time.Time) string {
	switch d := time.Since(t); {
	case t.IsZero():
		return "-"
	case d < time.Minute:
		return fmt.Sprintf("%ds", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd", int(d.Hours()/24))
	}
}

// gist returns the part for people of the result of a tool for collaboration.
func gist(tool, result string) string {
	if together(tool) {
		return admin.Gist(result)
	}
	return result
}

// together reports whether a tool is one for collaboration of agents.
func together(tool string) bool {
	return strings.HasPrefix(tool, "tasks/") || strings.HasPrefix(tool, "links/")
}
