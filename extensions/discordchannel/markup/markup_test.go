package markup_test

import (
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/extensions/discordchannel/markup"
)

func TestRender(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ source, want string }{
		"nothing":            {"hello", "hello"},
		"what Discord knows": {"# A\n**b** *c* ~~d~~ `e`\n- f\n  - g\n> h\n[i](https://j.example)", ""},
		"code stays":         {"```\n#### a || b\n| c | d |\n```\n`x || y`", ""},
		"a low heading":      {"#### The **end**\ntext", "**The end**\ntext"},
		"an underlined one":  {"Title\n=====\ntext", "# Title\ntext"},
		"an image":           {"see ![a cat](https://x.example/c.png)", "see [a cat](https://x.example/c.png)"},
		"a reference": {"see [this][1] and [that]\n\n[1]: https://a.example\n[that]: https://b.example",
			"see [this](https://a.example) and [that](https://b.example)\n\n[1]: https://a.example\n[that]: https://b.example"},
		"check boxes": {"- [ ] milk\n- [x] bread", "- ☐ milk\n- ☑ bread"},
		"two bars":    {"a || b || c", `a \|\| b \|\| c`},
		"a break":     {"a<br>b", "a\nb"},
		"a table": {"Prices:\n\n| What | Price |\n| --- | ---: |\n| **tea** | 2 |\n| coffee | 10 |\n\nend",
			"Prices:\n\n```\nWhat   | Price\n-------+------\ntea    |     2\ncoffee |    10\n```\n\nend"},
		"a wide table": {"| Name | Notes |\n|---|---|\n| one | " + strings.Repeat("word ", 10) + "|\n| two | |",
			"**one**\n- Notes: word word word word word word word word word word\n**two**"},
	} {
		want := tc.want
		if want == "" {
			want = tc.source
		}
		if got := markup.Render(tc.source); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// No text is lost, and nothing panics.
func FuzzRender(f *testing.F) {
	for _, s := range []string{"| a | b |\n|--|--|\n| c |", "![][x]\n\n[x]: y", "a\n==\n", "- [ ]", "[", "> | a |\n> |--|\n", "\xff||"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) {
		if got := markup.Render(source); strings.TrimSpace(got) == "" && strings.ContainsAny(source, "acdefghij0123456789") {
			t.Errorf("%q became %q", source, got)
		}
	})
}
