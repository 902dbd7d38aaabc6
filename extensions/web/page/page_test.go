package page

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
)

const serveArgument = "serve-page"

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == serveArgument {
		os.Exit(Serve(os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// paragraphs are long enough to be an article.
var paragraphs = strings.Repeat(`<p>The lighthouse, which the keeper paints each spring, stands on the northern rock,
and ships that pass it, even those of the large lines, sound their horns.</p>`, 6)

const around = `<!DOCTYPE html><html><head><title>The lighthouse - Harbor News</title>
<meta name="author" content="Anna Holm"><meta property="article:published_time" content="2026-05-04T10:00:00Z">
<script>var evil = 1</script></head><body><nav><a href="/">Home</a> <a href="/ads">Ads</a></nav>
<div style="display: none">Hidden words</div><article><h1>The lighthouse</h1>`

func article(inner string) []byte {
	return []byte(around + paragraphs + inner + `</article><footer>Copyright, cookies</footer></body></html>`)
}

func read(t *testing.T, s Source, body []byte) Page {
	t.Helper()
	p, err := Reader{}.Read(t.Context(), s, body)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestAnArticleBecomesMarkdown(t *testing.T) {
	t.Parallel()
	p := read(t, Source{URL: "https://news.test/a/b", Type: "text/html; charset=utf-8"}, article(
		`<h2>Tides</h2><ul><li>low</li><li>high_water</li></ul>
		<p>See <a href="../tides?day=2#x">the tide table</a>, <a href="javascript:alert(1)">not this</a>, and
		<a href="https://anna:pw@evil.test/">nor this</a>. <img src="/x.png" alt="A red lighthouse"></p>
		<table><thead><tr><th>Day</th><th>Time</th></tr></thead><tbody><tr><td>Monday</td><td>10:00</td></tr></tbody></table>
		<pre><code>one
  two</code></pre>`))
	if p.Title != "The lighthouse - Harbor News" && p.Title != "The lighthouse" || p.Author != "Anna Holm" ||
		p.Date != "2026-05-04" || p.Type != "text/html" || p.Cut {
		t.Errorf("%+v", p)
	}
	for _, want := range []string{"The lighthouse, which the keeper", "## Tides", "- low\n- high_water",
		"[the tide table](https://news.test/tides?day=2#x)", "not this", "nor this", "[picture: A red lighthouse]",
		"| Monday | 10:00 |", "one\n  two"} {
		if !strings.Contains(p.Text, want) {
			t.Errorf("%q is missing in\n%s", want, p.Text)
		}
	}
	for _, not := range []string{"javascript:", "anna:pw", "evil = 1", "Hidden words", "Copyright", "Ads", "<"} {
		if strings.Contains(p.Text, not) {
			t.Errorf("%q is in\n%s", not, p.Text)
		}
	}
}

func TestAPageThatIsNoArticle(t *testing.T) {
	t.Parallel()
	p := read(t, Source{URL: "https://news.test/", Type: "text/html"}, []byte(`<title>News</title><nav>Menu</nav>
		<main><ul><li><a href="/1">First</a><li><a href="/2">Second</a></ul></main>`))
	if p.Title != "News" || p.Text != "- [First](https://news.test/1)\n- [Second](https://news.test/2)" {
		t.Errorf("%+v", p)
	}
}

func TestOtherTexts(t *testing.T) {
	t.Parallel()
	latin, err := charmap.ISO8859_1.NewEncoder().String("Grüße")
	if err != nil {
		t.Fatal(err)
	}
	jis, err := japanese.ShiftJIS.NewEncoder().String("<title>灯台</title><p>灯台の守</p>")
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ claimed, body, wantType, want string }{
		"plain":                        {"text/plain", "one\r\ntwo\n\n\n\nthree", "text/plain", "one\ntwo\n\nthree"},
		"JSON":                         {"application/json", `{"a": "<b>"}`, "application/json", `{"a": "<b>"}`},
		"JSON of an API":               {"application/ld+json", `{"a":1}`, "application/ld+json", `{"a":1}`},
		"Markdown":                     {"text/markdown; charset=utf-8", "# A\n\n[b](c)", "text/markdown", "# A\n\n[b](c)"},
		"a page shown as text":         {"text/plain", "<html><p>a", "text/plain", "<html><p>a"},
		"without a type":               {"", "hello", "text/plain", "hello"},
		"HTML without a type":          {"", "<!DOCTYPE html><p>a", "text/html", "a"},
		"a type that is none":          {"???", "hello", "text/plain", "hello"},
		"an encoding":                  {"text/plain; charset=ISO-8859-1", latin, "text/plain", "Grüße"},
		"no encoding, late characters": {"text/plain", strings.Repeat("a", 2000) + " Grüße", "text/plain", strings.Repeat("a", 2000) + " Grüße"},
		"an encoding of a page":        {"text/html; charset=Shift_JIS", jis, "text/html", "灯台の守"},
		"cut in a character":           {"text/plain", strings.Repeat("a", 2000) + "ü\xc3", "text/plain", strings.Repeat("a", 2000) + "ü\ufffd"},
		"hidden characters":            {"text/plain", "a\u202eb\u200bc\U000e0041\x1b[31md", "text/plain", "abc[31md"},
	} {
		p := read(t, Source{URL: "https://x.test/", Type: tt.claimed}, []byte(tt.body))
		if p.Text != tt.want || p.Type != tt.wantType {
			t.Errorf("%s: %q of %s, want %q of %s", name, p.Text, p.Type, tt.want, tt.wantType)
		}
	}
}

func TestWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ claimed, body, want string }{
		"nothing":              {"text/html", "", "no text"},
		"scripts only":         {"text/html", "<html><body><div id=app></div><script>run()</script>", "no text"},
		"an archive":           {"application/zip", "PK\x05\x06" + strings.Repeat("\x00", 18), "cannot be read"},
		"a program as a page":  {"text/html", "MZ\x90\x00\x03\x00\x00\x00\x04\x00\x00\x00\xff\xff", "cannot be read"},
		"a damaged PDF":        {"application/pdf", "%PDF-1.4\nnonsense", "damaged"},
		"an unusual picture":   {"image/tiff", "II*\x00\x08\x00\x00\x00", "picture"},
		"control characters":   {"text/plain", "\u202e\u200b\u2066", "no text"},
		"elements within many": {"text/html", strings.Repeat("<div>", 5000), "damaged"},
	} {
		if p, err := (Reader{}).Read(t.Context(), Source{URL: "https://x.test/", Type: tt.claimed}, []byte(tt.body)); err == nil ||
			!strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %+v, %v, want %q", name, p, err, tt.want)
		}
	}
}

func TestALongTextIsCut(t *testing.T) {
	t.Parallel()
	p := read(t, Source{URL: "https://x.test/", Type: "text/plain"}, bytes.Repeat([]byte("\"quoted ü\" "), MaxText/8))
	if len(p.Text) > MaxText || len(p.Text) < MaxText-10 || !p.Cut {
		t.Errorf("%d bytes, cut: %v", len(p.Text), p.Cut)
	}
}

func TestInAProcessOfItsOwn(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := Reader{Command: []string{self, serveArgument}}
	p, err := r.Read(t.Context(), Source{URL: "https://x.test/", Type: "text/html"}, article(""))
	if err != nil || !strings.Contains(p.Text, "the northern rock") || p.Author != "Anna Holm" {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := r.Read(t.Context(), Source{URL: "https://x.test/", Type: "text/html"}, nil); err == nil ||
		!strings.Contains(err.Error(), "no text") {
		t.Error(err)
	}
}

func FuzzExtract(f *testing.F) {
	f.Add("text/html", article("<table><tr><td>a"))
	f.Add("text/html; charset=utf-16", []byte("\xff\xfea\x00"))
	f.Add("", []byte("<html><a href=http://[::1>"))
	f.Fuzz(func(t *testing.T, claimed string, body []byte) {
		p, err := Reader{}.Read(t.Context(), Source{URL: "https://x.test/", Type: claimed}, body)
		if err == nil && (p.Text == "" || len(p.Text) > MaxText) {
			t.Errorf("%d bytes", len(p.Text))
		}
	})
}
