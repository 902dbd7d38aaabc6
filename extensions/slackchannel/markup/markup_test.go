package markup

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/slack-go/slack"
)

// show writes elements as a line each: what they are, and their texts with styles.
func show(elements []slack.RichTextElement) string {
	var lines []string
	for _, e := range elements {
		switch e := e.(type) {
		case *slack.RichTextSection:
			lines = append(lines, "text "+inline(e.Elements))
		case *slack.RichTextQuote:
			lines = append(lines, "quote "+inline(e.Elements))
		case *slack.RichTextPreformatted:
			lines = append(lines, "code "+inline(e.Elements))
		case *slack.RichTextList:
			for _, item := range e.Elements {
				lines = append(lines, fmt.Sprintf("%s %d+%d %s", e.Style, e.Indent, e.Offset,
					inline(item.(*slack.RichTextSection).Elements)))
			}
		}
	}
	return strings.Join(lines, "\n")
}

func inline(elements []slack.RichTextSectionElement) (s string) {
	for _, e := range elements {
		switch e := e.(type) {
		case *slack.RichTextSectionTextElement:
			s += "[" + style(e.Style) + e.Text + "]"
		case *slack.RichTextSectionLinkElement:
			s += "[" + style(e.Style) + e.Text + "=" + e.URL + "]"
		}
	}
	return strings.ReplaceAll(s, "\n", "/")
}

func style(of *slack.RichTextSectionTextStyle) (s string) {
	if of == nil {
		return ""
	}
	for mark, set := range map[string]bool{"b": of.Bold, "i": of.Italic, "s": of.Strike, "c": of.Code} {
		if set {
			s += mark
		}
	}
	return s + ":"
}

func TestRender(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ source, want string }{
		"plain":        {"hello", "text [hello]"},
		"nothing":      {" \n ", ""},
		"paragraphs":   {"one\ntwo\n\nthree", "text [one/two//three]"},
		"styles":       {"a **b** _c_ ~~d~~ `e`", "text [a ][b:b][ ][i:c][ ][s:d][ ][c:e]"},
		"heading":      {"# One\n\ntwo", "text [b:One][//two]"},
		"link":         {"see [a page](https://x.org/a_b) now", "text [see ][a page=https://x.org/a_b][ now]"},
		"bad link":     {"[a](javascript:x) [b](/c)", "text [a (javascript:x) b (/c)]"},
		"auto link":    {"<https://x.org> a@b.c", "text [https://x.org=https://x.org][ a@b.c]"},
		"image":        {"![cat](https://x.org/c.png)", "text [cat=https://x.org/c.png]"},
		"mentions":     {"<!channel> <@U1> @here &lt;b&gt;", "text [<!channel> <@U1> @here <b>]"},
		"code":         {"x\n\n```go\na < b\n```\n\ny", "text [x]\ncode [a < b]\ntext [y]"},
		"quote":        {"> one\n> two\n>\n> - three", "quote [one/two/• three]"},
		"list":         {"- one\n- **two**", "bullet 0+0 [one]\nbullet 0+0 [b:two]"},
		"numbers":      {"3. one\n4. two", "ordered 0+2 [one]\nordered 0+2 [two]"},
		"nested":       {"- one\n  - two\n    1. three\n- four", "bullet 0+0 [one]\nbullet 1+0 [two]\nordered 2+0 [three]\nbullet 0+0 [four]"},
		"broken list":  {"1. one\n\n   ```\n   x\n   ```\n2. two", "ordered 0+0 [one]\ncode [x]\nordered 0+1 [two]"},
		"tasks":        {"- [ ] one\n- [x] two", "bullet 0+0 [☐ one]\nbullet 0+0 [☑ two]"},
		"rule":         {"a\n\n---\n\nb", "text [a//———//b]"},
		"small table":  {"| a | b |\n|---|--:|\n| 1 | 22 |", "code [a |  b/--+---/1 | 22]"},
		"html":         {"a <b>c</b><br>d <!-- e -->", "text [a <b>c</b>/d]"},
		"unclosed":     {"**a `b", "text [**a `b]"},
		"control":      {"a\x00b\x1bc", "text [abc]"},
		"after a list": {"- a\n\nb", "bullet 0+0 [a]\ntext [b]"},
	} {
		elements, _ := Render(tc.source)
		if got := show(elements); got != tc.want {
			t.Errorf("%s: %q is\n%s\nwant\n%s", name, tc.source, got, tc.want)
		}
	}
}

func TestWideTableBecomesAList(t *testing.T) {
	t.Parallel()
	elements, plain := Render("| name | note |\n|--|--|\n| tea | " + strings.Repeat("long ", 10) + "|")
	if got, want := show(elements), "text [b:tea][/][• note: long long long long long long long long long long]"; got != want &&
		!strings.HasPrefix(got, "text [b:tea][/• note: long") {
		t.Errorf("got %s (%q)", got, plain)
	}
}

func TestPlainTextHasTheContent(t *testing.T) {
	t.Parallel()
	_, plain := Render("# One\n\n- two\n- [three](https://x.org)\n\n> four\n\n```\nfive\n```")
	for _, word := range []string{"One", "two", "three", "four", "five"} {
		if strings.Count(plain, word) != 1 {
			t.Errorf("%q does not have %s once", plain, word)
		}
	}
}

// FuzzRender checks that nothing is empty that Slack refuses if it is empty.
func FuzzRender(f *testing.F) {
	for _, seed := range []string{"- \n- a", "> \n", "1. \n   - \n", "[](https://x.org)", "**  **", "| |\n|-|\n| |", "- > a\n- ```\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, source string) {
		elements, _ := Render(source)
		raw, err := json.Marshal(elements)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(raw), `"elements":[]`) || strings.Contains(string(raw), `"elements":null`) ||
			strings.Contains(string(raw), `"text":""`) {
			t.Errorf("%q has an empty element: %s", source, raw)
		}
		for _, kind := range []string{`"type":"user"`, `"type":"broadcast"`, `"type":"channel"`, `"type":"usergroup"`} {
			if strings.Contains(string(raw), kind+",") {
				t.Errorf("%q mentions somebody: %s", source, raw)
			}
		}
	})
}
