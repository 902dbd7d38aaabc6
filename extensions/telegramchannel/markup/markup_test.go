package markup_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-telegram/bot/models"

	"github.com/switchboard-run/switchboard/contract/markdown"
	"github.com/switchboard-run/switchboard/extensions/telegramchannel/markup"
)

// show writes entities as <type|text|extra>, in order.
func show(text string, entities []models.MessageEntity) string {
	units := utf16.Encode([]rune(text))
	var b strings.Builder
	for _, e := range entities {
		part := string(utf16.Decode(units[e.Offset : e.Offset+e.Length]))
		fmt.Fprintf(&b, "<%s|%s|%s%s>", e.Type, part, e.URL, e.Language)
	}
	return b.String()
}

func TestRender(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ source, text, entities string }{
		"plain":            {"Done, it is 5 > 3.", "Done, it is 5 > 3.", ""},
		"plain paragraphs": {"one\ntwo\n\nthree", "one\ntwo\n\nthree", ""},
		"bold and italic":  {"a **b *c* d** e", "a b c d e", "<bold|b c d|><italic|c|>"},
		"emoji in front":   {"😀 **b**", "😀 b", "<bold|b|>"},
		"strike":           {"~~old~~ new", "old new", "<strikethrough|old|>"},
		"tilde as about":   {"~5 min, ~6 min", "~5 min, ~6 min", ""},
		"heading":          {"# T **x**\ntext", "T x\n\ntext", "<bold|T x|>"},
		"code":             {"run `a*b*` now", "run a*b* now", "<code|a*b*|>"},
		"code in bold":     {"**a `b` c**", "a b c", "<bold|a |><code|b|><bold| c|>"},
		"fence":            {"x\n```go\nif a {\n  b\n}\n```\ny", "x\n\nif a {\n  b\n}\n\ny", "<pre|if a {\n  b\n}|go>"},
		"unclosed fence":   {"```\nx", "x", "<pre|x|>"},
		"link": {"see [the **docs**](https://go.dev/a?b=1&c=2).", "see the docs.",
			"<text_link|the docs|https://go.dev/a?b=1&c=2><bold|docs|>"},
		"code as a link":     {"[`x`](https://go.dev)", "x", "<text_link|x|https://go.dev>"},
		"relative link":      {"[docs](./README.md)", "docs (./README.md)", ""},
		"mail link":          {"[a@b.c](mailto:a@b.c)", "a@b.c", ""},
		"bare url":           {"https://go.dev/a_b_c", "https://go.dev/a_b_c", ""},
		"autolink":           {"<https://go.dev>", "https://go.dev", ""},
		"image":              {"![a cat](https://x.org/c.png)", "a cat", "<text_link|a cat|https://x.org/c.png>"},
		"image in a link":    {"[![i](https://x.org/i)](https://y.org)", "i", "<text_link|i|https://y.org>"},
		"list":               {"- a\n- **b**\n  - c\n\nend", "• a\n• b\n  • c\n\nend", "<bold|b|>"},
		"star list":          {"* a\n* b", "• a\n• b", ""},
		"numbers":            {"3. a\n4. b", "3. a\n4. b", ""},
		"loose list":         {"1. a\n\n   more\n\n2. b", "1. a\n  more\n2. b", ""},
		"tasks":              {"- [x] a\n- [ ] b", "☑ a\n☐ b", ""},
		"code in a list":     {"- a:\n  ```\n  x\n   y\n  ```\n- b", "• a:\nx\n y\n• b", "<pre|x\n y|>"},
		"quote":              {"> a\n> **b**\n\nc", "a\nb\n\nc", "<blockquote|a\nb|><bold|b|>"},
		"quote in a quote":   {"> a\n>> b", "a\n\nb", "<blockquote|a\n\nb|>"},
		"quote with code":    {"> a `b`", "a b", "<blockquote|a b|><code|b|>"},
		"rule":               {"a\n\n---\n\nb", "a\n\n———\n\nb", ""},
		"escapes":            {`\*a\* &amp; \_b\_ 1\. &lt;x&gt; \&amp;`, "*a* & _b_ 1. <x> &amp;", ""},
		"snake case":         {"call my_func_name now *", "call my_func_name now *", ""},
		"html stays":         {"a <b>x</b> <think>", "a <b>x</b> <think>", ""},
		"line break":         {"a<br>b", "a\nb", ""},
		"comment goes":       {"a\n\n<!-- x -->\n\nb", "a\n\nb", ""},
		"control characters": {"a\x01**b**\r\nc", "ab\nc", "<bold|b|>"},
		"only a rule":        {"---", "———", ""},
		"nothing":            {"", "", ""},
		"an empty fence":     {"```\n```", "", ""},
		"bold in heading":    {"## **x**", "x", "<bold|x|>"},
		"trailing heading":   {"a\n\n#", "a", ""},
		"russian": {"Готово: **чайник** через _5 минут_", "Готово: чайник через 5 минут",
			"<bold|чайник|><italic|5 минут|>"},
		"table": {
			"| a | bb |\n|---|---:|\n| **long** | 1 |\n",
			"a    | bb\n-----+---\nlong |  1",
			"<pre|a    | bb\n-----+---\nlong |  1|>",
		},
		"wide table": {
			"| name | what |\n|---|---|\n| x | " + strings.Repeat("w", 50) + " |\n| y | `z` |\n",
			"x\n• what: " + strings.Repeat("w", 50) + "\n\ny\n• what: z",
			"<bold|x|><bold|y|><code|z|>",
		},
	} {
		text, entities := markup.Render(tc.source)
		if text != tc.text {
			t.Errorf("%s: text %q, want %q", name, text, tc.text)
			continue
		}
		if got := show(text, entities); got != tc.entities {
			t.Errorf("%s: entities %q, want %q", name, got, tc.entities)
		}
	}
}

func TestRenderKeepsToTheEntityLimit(t *testing.T) {
	t.Parallel()
	_, entities := markup.Render(strings.Repeat("**a** b ", 300))
	if len(entities) != markup.MaxEntities {
		t.Errorf("%d entities, want %d", len(entities), markup.MaxEntities)
	}
}

func TestLen(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]int{"": 0, "abc": 3, "чай": 3, "😀": 2, "e\u0301": 2, "\xff": 1} {
		if got := markdown.Len(s); got != want {
			t.Errorf("Len(%q) = %d, want %d", s, got, want)
		}
	}
}

// check checks Telegram's rules for a message with entities.
func check(t *testing.T, source, text string, entities []models.MessageEntity) {
	t.Helper()
	if !utf8.ValidString(text) {
		t.Fatalf("%q: text %q is not UTF-8", source, text)
	}
	units := utf16.Encode([]rune(text))
	var open []models.MessageEntity
	last := -1
	for _, e := range entities {
		end := e.Offset + e.Length
		if e.Offset < 0 || e.Length <= 0 || end > len(units) || e.Offset < last {
			t.Fatalf("%q: entity %+v does not fit %q", source, e, text)
		}
		last = e.Offset
		for _, at := range []int{e.Offset, end} {
			if at > 0 && at < len(units) && utf16.DecodeRune(rune(units[at-1]), rune(units[at])) != utf8.RuneError {
				t.Fatalf("%q: entity %+v cuts a character of %q", source, e, text)
			}
		}
		for len(open) > 0 && open[len(open)-1].Offset+open[len(open)-1].Length <= e.Offset {
			open = open[:len(open)-1]
		}
		for i, outer := range open {
			if end > outer.Offset+outer.Length {
				t.Fatalf("%q: %+v overlaps %+v", source, e, outer)
			}
			solid := func(e models.MessageEntity) bool {
				return e.Type == models.MessageEntityTypeCode || e.Type == models.MessageEntityTypePre
			}
			quote := models.MessageEntityTypeBlockquote
			if solid(outer) || solid(e) && outer.Type != quote || e.Type == outer.Type || e.Type == quote && i > 0 {
				t.Fatalf("%q: %+v is inside of %+v", source, e, outer)
			}
		}
		open = append(open, e)
	}
}

func FuzzRender(f *testing.F) {
	for _, s := range []string{
		"a **b *c* d** e", "# h\n- x\n  1. y\n```go\nz\n```",
		"> q\n> > r `c`\n\n| a | b |\n|--|:-:|\n| **c** | [d](http://e.f) |",
		"[a `b` **c**](https://d.e) ![i](x) <https://a.b> <br> &#128512; \\*", "- [x] **`a`**\n\n      code\n***",
		"~~😀 *x~~ y*\r\n\x00\xff",
		"**a\n\n> b `c`\n# d", "[![a](http://b.c)](http://d.e)", "1) a\n\n   ```\n   b",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) {
		text, entities := markup.Render(source)
		check(t, source, text, entities)
		if len(entities) > markup.MaxEntities {
			t.Fatalf("%q: %d entities", source, len(entities))
		}
	})
}

func BenchmarkRender(b *testing.B) {
	source := "Here is **what** I found:\n\n- one `x`\n- two [y](https://z.org)\n\n```go\nfunc main() {}\n```\n"
	b.ReportAllocs()
	for b.Loop() {
		markup.Render(source)
	}
}
