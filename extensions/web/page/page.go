// Package page extracts the text of what a web server sent: of a web page its article, as
// Markdown with its links, of a PDF or an office document its text, and texts as they are.
//
// What comes from a server is hostile: Serve does the work in a process of its own, with the
// limits of package document.
package page

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gabriel-vasile/mimetype"
	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/transform"

	"github.com/switchboard-run/switchboard/sdk/document"
)

// MaxText is the most text of a page, in bytes. Encoded as JSON it stays below
// document.MaxText.
const MaxText = 512 << 10

// Source is what a server sent.
type Source struct {
	URL  string `json:"url"`
	Type string `json:"type"` // its Content-Type
}

// Page is the text of a source.
type Page struct {
	Title  string `json:"title,omitempty"`
	Author string `json:"author,omitempty"`
	Date   string `json:"date,omitempty"` // of its publication, YYYY-MM-DD
	Type   string `json:"type"`           // such as text/html
	Text   string `json:"text"`
	Cut    bool   `json:"cut,omitempty"` // there is more text than MaxText
}

// Reader reads pages. The zero value does it in this process.
type Reader struct {
	// Command is a program that calls Serve, with its arguments.
	Command []string
}

// Read returns the page. Its errors are for people, or those of ctx.
func (r Reader) Read(ctx context.Context, s Source, body []byte) (p Page, err error) {
	head, err := json.Marshal(s)
	if err != nil {
		return p, err
	}
	out, err := document.Reader{Command: r.Command, Extract: extract}.Read(ctx, func(to io.Writer) error {
		if _, err := to.Write(append(head, '\n')); err != nil {
			return err
		}
		_, err := to.Write(body)
		return err
	})
	if err != nil {
		return p, err
	}
	return p, json.Unmarshal([]byte(out), &p)
}

// Serve extracts the page in in, as a process of its own, and returns its exit code.
func Serve(in io.Reader, out, reason io.Writer) int {
	return document.ServeExtract(in, out, reason, extract)
}

// extract returns a page as JSON, from a line with its source and the body.
func extract(file []byte) (string, error) {
	head, body, _ := bytes.Cut(file, []byte("\n"))
	var s Source
	if err := json.Unmarshal(head, &s); err != nil {
		return "", fmt.Errorf("read the source of a page: %w", err)
	}
	p, err := s.read(body)
	if err != nil {
		return "", err
	}
	if p.Text = clean(p.Text); p.Text == "" {
		return "", errors.New("there is no text in it; the page may need a browser that runs its scripts")
	}
	if len(p.Text) > MaxText {
		p.Text, p.Cut = strings.ToValidUTF8(p.Text[:MaxText], ""), true
	}
	for _, line := range []*string{&p.Title, &p.Author, &p.Date} {
		*line = oneLine(*line)
	}
	b, err := json.Marshal(p)
	return string(b), err
}

func (s Source) read(body []byte) (Page, error) {
	found, _, err := mime.ParseMediaType(mimetype.Detect(body).String())
	if err != nil {
		found = ""
	}
	claimed, _, err := mime.ParseMediaType(s.Type)
	if err != nil {
		claimed = ""
	}
	claimsText := strings.HasPrefix(claimed, "text/") || strings.HasSuffix(claimed, "json") ||
		strings.HasSuffix(claimed, "xml")
	switch {
	case claimed == "text/html" || claimed == "application/xhtml+xml" || found == "text/html" && !claimsText:
		if !isText(body) {
			break
		}
		return s.readHTML(s.decode(body))
	case isText(body) && (claimsText || claimed == "" || strings.HasPrefix(found, "text/")):
		return Page{Type: orElse(claimed, "text/plain"), Text: s.decode(body)}, nil
	}
	text, err := document.Text(body)
	if errors.Is(err, document.ErrPicture) {
		err = errors.New("it is a picture of a kind that cannot be shown")
	}
	return Page{Type: found, Text: text}, err
}

// isText reports whether a body looks like text in any encoding.
func isText(body []byte) bool {
	for kind := mimetype.Detect(body); kind != nil; kind = kind.Parent() {
		if kind.Is("text/plain") {
			return true
		}
	}
	return false
}

// decode returns a text in UTF-8. What names no encoding and is valid UTF-8 is that.
func (s Source) decode(body []byte) string {
	e, _, certain := charset.DetermineEncoding(body, s.Type)
	if !certain && utf8.Valid(whole(body)) {
		e = encoding.Nop
	}
	text, _, err := transform.Bytes(e.NewDecoder(), body)
	if err != nil {
		text = body
	}
	return strings.ToValidUTF8(strings.TrimPrefix(string(text), "\ufeff"), "\ufffd")
}

// whole leaves out the beginning of a character at the end, where a body was cut.
func whole(body []byte) []byte {
	for n := 1; n <= min(utf8.UTFMax-1, len(body)); n++ {
		if last := body[len(body)-n:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				return body[:len(body)-n]
			}
			break
		}
	}
	return body
}

// clean returns a text without what is not shown: control characters, marks of direction,
// and the tag characters with which texts are hidden from people.
func clean(text string) string {
	var out strings.Builder
	empty := 0
	for line := range strings.Lines(text) {
		line = strings.TrimRightFunc(strings.Map(shown, line), unicode.IsSpace)
		if line == "" {
			empty++
			continue
		}
		if out.Len() > 0 {
			out.WriteString(strings.Repeat("\n", 1+min(empty, 1)))
		}
		empty = 0
		out.WriteString(line)
	}
	return out.String()
}

func shown(r rune) rune {
	switch {
	case r == '\t':
		return r
	case unicode.IsControl(r), r >= 0x202a && r <= 0x202e, r >= 0x2060 && r <= 0x206f, r >= 0xe0000 && r <= 0xe0fff,
		r == '\u200b', r == '\u200e', r == '\u200f', r == '\ufeff':
		return -1
	}
	return r
}

// maxLine is the most characters of a title and the like.
const maxLine = 300

func oneLine(s string) string {
	characters := []rune(strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		return shown(r)
	}, s)), " "))
	if len(characters) > maxLine {
		return string(characters[:maxLine-1]) + "…"
	}
	return string(characters)
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
