package document

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
)

// serveVariable makes the test binary a process that extracts a text, or one that hangs.
const serveVariable = "document-test-serve"

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == serveVariable {
		os.Exit(Serve(os.Stdin, os.Stdout, os.Stderr))
	}
	if len(os.Args) == 2 && os.Args[1] == "crash" {
		os.Exit(2)
	}
	os.Exit(m.Run())
}

// zipped is an archive of files with these texts.
func zipped(t *testing.T, files ...[2]string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, f := range files {
		h := &zip.FileHeader{Name: f[0], Method: zip.Deflate}
		if f[0] == "mimetype" {
			h.Method = zip.Store
		}
		w, err := z.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, f[1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// pdfOf is a PDF of so many pages.
func pdfOf(pages int) []byte {
	var b bytes.Buffer
	var offsets []int
	object := func(format string, args ...any) {
		offsets = append(offsets, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n", len(offsets))
		fmt.Fprintf(&b, format, args...)
		b.WriteString("\nendobj\n")
	}
	b.WriteString("%PDF-1.4\n")
	object("<</Type/Catalog/Pages 2 0 R>>")
	var kids strings.Builder
	for i := range pages {
		fmt.Fprintf(&kids, "%d 0 R ", 4+2*i)
	}
	object("<</Type/Pages/Count %d/Kids[%s]>>", pages, kids.String())
	object("<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>")
	for i := range pages {
		text := fmt.Sprintf("BT /F1 12 Tf 72 700 Td (This is page %d) Tj ET", i+1)
		object("<</Type/Page/Parent 2 0 R/Resources<</Font<</F1 3 0 R>>>>/Contents %d 0 R>>", 5+2*i)
		object("<</Length %d>>stream\n%s\nendstream", len(text), text)
	}
	xref := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(offsets)+1)
	for _, o := range offsets {
		fmt.Fprintf(&b, "%010d 00000 n \n", o)
	}
	fmt.Fprintf(&b, "trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n", len(offsets)+1, xref)
	return b.Bytes()
}

const (
	types = `<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>`
	word  = `<?xml version="1.0"?><w:document xmlns:w="w"><w:body><w:p><w:r><w:t>Dear Anna,</w:t></w:r></w:p>` +
		`<w:p><w:r><w:t>two</w:t><w:tab/><w:t>words</w:t></w:r></w:p></w:body></w:document>`
	shared = `<sst><si><t>milk</t></si><si><r><t>brown </t></r><r><t>bread</t></r></si></sst>`
	sheet  = `<worksheet><sheetData><row><c t="s"><v>0</v></c><c><v>2.5</v></c></row>` +
		`<row><c t="s"><v>1</v></c><c t="inlineStr"><is><t>new</t></is></c></row></sheetData></worksheet>`
	odt = `<office:document-content xmlns:office="o" xmlns:text="text"><office:body><text:h>Title</text:h>` +
		`<text:p>One <text:span>two</text:span></text:p></office:body></office:document-content>`
)

func docx(t *testing.T, document string) []byte {
	t.Helper()
	return zipped(t, [2]string{"[Content_Types].xml", types}, [2]string{"_rels/.rels", types},
		[2]string{"word/document.xml", document})
}

func TestText(t *testing.T) {
	t.Parallel()
	slide := func(text string) string {
		return `<p:sld xmlns:a="a"><a:p><a:r><a:t>` + text + `</a:t></a:r></a:p></p:sld>`
	}
	for name, tt := range map[string]struct {
		file []byte
		want string
	}{
		"plain":  {[]byte("\ufeffПривет\nмир\n"), "Привет\nмир"},
		"JSON":   {[]byte(`{"a": 1}`), `{"a": 1}`},
		"CSV":    {[]byte("a,b\n1,2\n3,4\n"), "a,b\n1,2\n3,4"},
		"source": {[]byte("package main\n\nfunc main() {}\n"), "package main\n\nfunc main() {}"},
		"UTF-16": {[]byte("\xff\xfeh\x00i\x00"), "hi"},
		"Latin":  {[]byte("caf\xe9 au lait\n"), "café au lait"},
		"HTML": {[]byte(`<!DOCTYPE html><html><head><title>News</title><style>p{}</style></head><body><script>evil()` +
			`</script><h1>Big  news</h1><p>It <b>rains</b>.</p><ul><li>one<li>two</ul></body></html>`),
			"News\n\nBig news\n\nIt rains.\n\none\ntwo"},
		"Word": {docx(t, word), "Dear Anna,\ntwo\twords"},
		"Excel": {zipped(t, [2]string{"[Content_Types].xml", types}, [2]string{"_rels/.rels", types},
			[2]string{"xl/workbook.xml", "<workbook/>"}, [2]string{"xl/sharedStrings.xml", shared},
			[2]string{"xl/worksheets/sheet1.xml", sheet}), "[sheet 1]\nmilk\t2.5\nbrown bread\tnew"},
		"PowerPoint": {zipped(t, [2]string{"[Content_Types].xml", types}, [2]string{"_rels/.rels", types},
			[2]string{"ppt/presentation.xml", "<p/>"}, [2]string{"ppt/slides/slide10.xml", slide("last")},
			[2]string{"ppt/slides/slide2.xml", slide("first")}), "[slide 1]\nfirst\n\n[slide 2]\nlast"},
		"OpenDocument": {zipped(t, [2]string{"mimetype", "application/vnd.oasis.opendocument.text"},
			[2]string{"content.xml", odt}), "Title\nOne two"},
		"PDF": {pdfOf(2), "[page 1 of 2]\nThis is page 1\n\n[page 2 of 2]\nThis is page 2"},
		"SVG": {[]byte(`<svg xmlns="http://www.w3.org/2000/svg"><script>x()</script></svg>`),
			`<svg xmlns="http://www.w3.org/2000/svg"><script>x()</script></svg>`},
	} {
		got, err := Text(tt.file)
		if err != nil || got != tt.want {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, tt.want)
		}
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	bomb := docx(t, "<w:t>"+strings.Repeat(" ", maxUnpacked)+"</w:t>")
	var many [][2]string
	for i := range maxFiles {
		many = append(many, [2]string{fmt.Sprint("word/", i), ""})
	}
	crowd := zipped(t, append([][2]string{{"[Content_Types].xml", types}, {"_rels/.rels", types},
		{"word/document.xml", word}}, many...)...)
	broken := pdfOf(3)
	for name, tt := range map[string]struct {
		file []byte
		says string
	}{
		"empty":         {nil, "no text"},
		"a bomb":        {bomb, "unpacks to more than 64 MB"},
		"many files":    {crowd, "more than 5000 files"},
		"not XML":       {docx(t, "<w:t>&broken"), "damaged"},
		"cut off":       {docx(t, word)[:120], ""},
		"another type":  {zipped(t, [2]string{"a.txt", "a"}), "application/zip cannot be read"},
		"a program":     {[]byte("\x7fELF\x02\x01\x01\x00 and so on \x00\x00"), "cannot be read"},
		"a damaged PDF": {broken[:len(broken)/2], "damaged"},
		"a PNG":         {[]byte("\x89PNG\r\n\x1a\n0000"), ErrPicture.Error()},
	} {
		if text, err := Text(tt.file); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %q, %v, want %q", name, text, err, tt.says)
		}
	}
}

func TestLongPDF(t *testing.T) {
	t.Parallel()
	text, err := Text(pdfOf(10_000)) // on a slow machine fewer pages are read
	if err != nil || !strings.Contains(text, "[page 1 of 10000]") || strings.Contains(text, "[page 201 of") ||
		!strings.HasSuffix(text, " pages are not read]") {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}

// A process of its own says the same, and its crash is a sentence.
func TestReader(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	read := func(mode string, file []byte) (string, error) {
		return Reader{Command: []string{self, mode}}.Read(t.Context(), func(w io.Writer) error {
			_, err := w.Write(file)
			return err
		})
	}
	if text, err := read(serveVariable, docx(t, word)); err != nil || text != "Dear Anna,\ntwo\twords" {
		t.Errorf("got %q, %v", text, err)
	}
	if _, err := read(serveVariable, []byte("\x89PNG\r\n\x1a\n0000")); !errors.Is(err, ErrPicture) {
		t.Errorf("a picture: %v", err)
	}
	if _, err := read(serveVariable, zipped(t, [2]string{"a", "b"})); err == nil ||
		err.Error() != "files of the type application/zip cannot be read" {
		t.Errorf("an archive: %v", err)
	}
	if _, err := read("crash", []byte("x")); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("a crash: %v", err)
	}
	gone := errors.New("gone")
	if _, err := (Reader{}).Read(t.Context(), func(io.Writer) error { return gone }); !errors.Is(err, gone) {
		t.Errorf("an error of fetch: %v", err)
	}
}

func FuzzText(f *testing.F) {
	f.Add([]byte("<html><script>"))
	f.Add([]byte("PK\x03\x04"))
	f.Fuzz(func(t *testing.T, file []byte) {
		if text, err := Text(file); err == nil && (text == "" || len(text) > MaxText) {
			t.Errorf("%d bytes", len(text))
		}
	})
}
