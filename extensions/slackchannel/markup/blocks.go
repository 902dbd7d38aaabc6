package markup

import (
	"strconv"
	"strings"

	"github.com/slack-go/slack"
	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"

	"github.com/switchboard-run/switchboard/sdk/table"
)

const (
	rule      = "———"
	maxIndent = 8
)

// blocks writes the block children of a node, separated by blank lines.
func (w *writer) blocks(parent ast.Node) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		w.block(n)
		w.gap = "\n\n"
	}
}

func (w *writer) block(n ast.Node) {
	switch n := n.(type) {
	case *ast.Heading:
		w.styled(func(s *slack.RichTextSectionTextStyle) { s.Bold = true }, func() { w.inlines(n) })
	case *ast.ThematicBreak:
		w.write(rule)
	case *ast.Blockquote:
		w.close()
		if inline := w.within(func() { w.flat(n) }); len(inline) > 0 {
			w.done = append(w.done, &slack.RichTextQuote{Type: slack.RTEQuote, Elements: inline})
			w.plain.WriteString("\n")
		}
	case *ast.List:
		w.close()
		w.list(n, 0)
	case *ast.FencedCodeBlock, *ast.CodeBlock:
		w.pre(strings.TrimRight(w.rawLines(n), " \n"))
	case *ast.HTMLBlock:
		w.write(w.html(n))
	case *extast.Table:
		w.table(n)
	case *ast.Paragraph, *ast.TextBlock:
		w.inlines(n)
	default:
		if n.Type() == ast.TypeBlock {
			w.blocks(n)
		} else {
			w.inlineNode(n)
		}
	}
}

// flat writes blocks as lines of text, where Slack has no blocks in a block.
func (w *writer) flat(parent ast.Node) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.List:
			w.flatList(n)
		case *ast.Blockquote:
			w.flat(n)
		case *ast.FencedCodeBlock, *ast.CodeBlock:
			w.styled(func(s *slack.RichTextSectionTextStyle) { s.Code = true }, func() {
				w.write(strings.TrimRight(w.rawLines(n), " \n"))
			})
		case *extast.Table:
			for r := n.FirstChild(); r != nil; r = r.NextSibling() {
				for c := r.FirstChild(); c != nil; c = c.NextSibling() {
					w.inlines(c)
					w.gap = " | "
				}
				w.gap = "\n"
			}
		default:
			w.block(n)
		}
		w.gap = "\n"
	}
}

func (w *writer) flatList(l *ast.List) {
	number := l.Start
	for item := l.FirstChild(); item != nil; item = item.NextSibling() {
		mark := "• "
		if l.IsOrdered() {
			mark = strconv.Itoa(number) + ". "
			number++
		}
		w.gap = "\n"
		w.write(mark)
		w.flat(item)
	}
}

// list writes a list. What an item has besides its text interrupts the list.
func (w *writer) list(l *ast.List, indent int) {
	style, number := slack.RTEListBullet, 0
	if l.IsOrdered() {
		style, number = slack.RTEListOrdered, l.Start-1
	}
	var part *slack.RichTextList
	begin := func() {
		part = slack.NewRichTextList(style, min(indent, maxIndent))
		if l.IsOrdered() {
			part.Offset = max(number, 0)
		}
	}
	begin()
	end := func() {
		if len(part.Elements) > 0 {
			w.done = append(w.done, part)
		}
		begin()
	}
	for item := l.FirstChild(); item != nil; item = item.NextSibling() {
		var rest []ast.Node
		w.plain.WriteString("• ")
		inline := w.within(func() {
			for n := item.FirstChild(); n != nil; n = n.NextSibling() {
				switch n.(type) {
				case *ast.Paragraph, *ast.TextBlock, *ast.Heading, *ast.ThematicBreak, *ast.HTMLBlock:
					if len(rest) == 0 {
						w.block(n)
						w.gap = "\n"
						continue
					}
				}
				rest = append(rest, n)
			}
		})
		w.plain.WriteString("\n")
		if len(inline) == 0 {
			inline = []slack.RichTextSectionElement{slack.NewRichTextSectionTextElement(" ", nil)}
		}
		part.Elements = append(part.Elements, slack.NewRichTextSection(inline...))
		number++
		if len(rest) == 0 {
			continue
		}
		end()
		for _, n := range rest {
			if inner, ok := n.(*ast.List); ok {
				w.close()
				w.list(inner, indent+1)
				continue
			}
			w.block(n)
			w.gap = "\n"
		}
		w.close()
	}
	end()
}

// pre writes a code block.
func (w *writer) pre(code string) {
	if strings.TrimSpace(code) == "" {
		return
	}
	w.close()
	w.done = append(w.done, &slack.RichTextPreformatted{
		Type:     slack.RTEPreformatted,
		Elements: []slack.RichTextSectionElement{slack.NewRichTextSectionTextElement(code, nil)},
	})
	w.plain.WriteString(code + "\n")
}

func (w *writer) rawLines(n ast.Node) string {
	var b strings.Builder
	for i := range n.Lines().Len() {
		segment := n.Lines().At(i)
		b.Write(segment.Value(w.source))
	}
	return b.String()
}

func (w *writer) html(n *ast.HTMLBlock) string {
	s := w.rawLines(n)
	if n.HasClosure() {
		s += string(n.ClosureLine.Value(w.source))
	}
	if trimmed := strings.TrimSpace(s); strings.HasPrefix(trimmed, "<!--") && strings.HasSuffix(trimmed, "-->") {
		return ""
	}
	return strings.TrimRight(s, "\n")
}

func (w *writer) table(t *extast.Table) {
	var rows [][]ast.Node
	for r := t.FirstChild(); r != nil; r = r.NextSibling() {
		var cells []ast.Node
		for c := r.FirstChild(); c != nil; c = c.NextSibling() {
			cells = append(cells, c)
		}
		rows = append(rows, cells)
	}
	if len(rows) == 0 {
		return
	}
	grid := make([][]string, len(rows))
	for i, cells := range rows {
		for _, cell := range cells {
			grid[i] = append(grid[i], w.cellText(cell))
		}
	}
	text, fits := table.Align(grid, t.Alignments)
	if !fits {
		w.tableAsList(rows)
		return
	}
	w.pre(text)
}

// cellText returns a cell without formats, on one line.
func (w *writer) cellText(cell ast.Node) string {
	inner := &writer{source: w.source}
	inner.inlines(cell)
	return strings.TrimSpace(strings.ReplaceAll(inner.plain.String(), "\n", " "))
}

// tableAsList writes each row as its first cell and, below it, the other cells with
// their headings.
func (w *writer) tableAsList(rows [][]ast.Node) {
	for _, cells := range rows[1:] {
		for j, cell := range cells {
			text := w.cellText(cell)
			switch {
			case text == "":
				continue
			case j == 0:
				w.styled(func(s *slack.RichTextSectionTextStyle) { s.Bold = true }, func() { w.inlines(cell) })
			default:
				w.write("• ")
				if heading := w.cellText(rows[0][j]); heading != "" {
					w.write(heading + ": ")
				}
				w.inlines(cell)
			}
			w.gap = "\n"
		}
		w.gap = "\n\n"
	}
}
