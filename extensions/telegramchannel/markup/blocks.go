package markup

import (
	"strconv"
	"strings"

	"github.com/go-telegram/bot/models"
	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
)

const rule = "———"

// blocks writes the block children of a node, separated by blank lines.
func (w *writer) blocks(parent ast.Node) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		w.block(n)
		if !tight(parent) {
			w.lines(2)
		} else {
			w.lines(1)
		}
	}
}

// tight reports whether the children of a node are on adjacent lines.
func tight(n ast.Node) bool {
	return n.Kind() == ast.KindListItem
}

func (w *writer) block(n ast.Node) {
	switch n := n.(type) {
	case *ast.Heading:
		w.styled(models.MessageEntityTypeBold, func() { w.inlines(n) })
	case *ast.ThematicBreak:
		w.write(rule)
	case *ast.Blockquote:
		w.quote(func() { w.blocks(n) })
	case *ast.List:
		w.list(n)
	case *ast.FencedCodeBlock:
		w.codeBlock(n, string(n.Language(w.source)))
	case *ast.CodeBlock:
		w.codeBlock(n, "")
	case *ast.HTMLBlock:
		w.htmlBlock(n)
	case *extast.Table:
		w.table(n)
	case *ast.Paragraph, *ast.TextBlock:
		w.inlines(n)
	default:
		if n.Type() == ast.TypeBlock {
			w.blocks(n)
		} else {
			w.inline(n)
		}
	}
}

func (w *writer) rawLines(n ast.Node) string {
	var b strings.Builder
	for i := range n.Lines().Len() {
		segment := n.Lines().At(i)
		b.Write(segment.Value(w.source))
	}
	return clean(b.String())
}

func (w *writer) codeBlock(n ast.Node, language string) {
	code := strings.TrimRight(w.rawLines(n), " \n")
	if strings.TrimSpace(code) == "" {
		return
	}
	w.pre(code, clean(language))
}

// pre writes a code block on its own lines and without indent, which would become part
// of the code.
func (w *writer) pre(code, language string) {
	outer := w.indent
	w.indent = ""
	w.lines(1)
	w.solid(models.MessageEntity{Type: models.MessageEntityTypePre, Language: language}, code)
	w.indent = outer
}

func (w *writer) htmlBlock(n *ast.HTMLBlock) {
	s := w.rawLines(n)
	if n.HasClosure() {
		s += clean(string(n.ClosureLine.Value(w.source)))
	}
	if trimmed := strings.TrimSpace(s); strings.HasPrefix(trimmed, "<!--") && strings.HasSuffix(trimmed, "-->") {
		return
	}
	w.write(strings.TrimRight(s, "\n"))
}

func (w *writer) list(l *ast.List) {
	number := l.Start
	for item := l.FirstChild(); item != nil; item = item.NextSibling() {
		mark := "• "
		if l.IsOrdered() {
			mark = strconv.Itoa(number) + ". "
			number++
		} else if isTask(item) {
			mark = ""
		}
		w.flush()
		w.raw(mark)
		outer := w.indent
		w.indent += "  "
		w.blocks(item)
		w.indent = outer
		w.lines(1)
	}
}

// isTask reports whether an item begins with a check box, which replaces the bullet.
func isTask(item ast.Node) bool {
	first := item.FirstChild()
	if first == nil || first.FirstChild() == nil {
		return false
	}
	_, ok := first.FirstChild().(*extast.TaskCheckBox)
	return ok
}

// clean removes characters that Telegram removes, so that offsets stay correct.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7F {
			return -1
		}
		return r
	}, s)
}
