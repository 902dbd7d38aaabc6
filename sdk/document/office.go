package document

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Bounds of an archive: its files, and what is unpacked of them in all, in bytes.
const (
	maxFiles    = 5000
	maxUnpacked = 64 << 20
)

var (
	errBomb    = fmt.Errorf("it unpacks to more than %d MB", maxUnpacked>>20)
	errDamaged = errors.New("its file is damaged or incomplete")
)

const officePrefix = "application/vnd.openxmlformats-officedocument."

// officeKinds are the parts with the text of each kind of document.
var officeKinds = map[string][]string{
	officePrefix + "wordprocessingml.document":        {"word/document.xml", "word/footnotes.xml"},
	officePrefix + "presentationml.presentation":      {"ppt/slides/slide*.xml"},
	officePrefix + "spreadsheetml.sheet":              {"xl/worksheets/sheet*.xml"},
	"application/vnd.oasis.opendocument.text":         {"content.xml"},
	"application/vnd.oasis.opendocument.spreadsheet":  {"content.xml"},
	"application/vnd.oasis.opendocument.presentation": {"content.xml"},
}

// archive is an office document.
type archive struct {
	files []*zip.File
	left  int64    // to unpack, in bytes
	texts []string // of a workbook, by number
}

func officeText(file []byte, parts []string) (string, error) {
	z, err := zip.NewReader(bytes.NewReader(file), int64(len(file)))
	switch {
	case err != nil:
		return "", errDamaged
	case len(z.File) > maxFiles:
		return "", fmt.Errorf("it holds more than %d files", maxFiles)
	}
	a := &archive{files: z.File, left: maxUnpacked}
	if err := a.sharedTexts(); err != nil {
		return "", err
	}
	var out writer
	for _, pattern := range parts {
		for i, f := range a.find(pattern) {
			if strings.Contains(pattern, "*") {
				out.line()
				out.text(fmt.Sprintf("[%s %d]", strings.TrimSuffix(path.Base(pattern), "*.xml"), i+1))
				out.line()
			}
			if err := a.read(f, &out); err != nil {
				return "", err
			}
		}
	}
	return out.String(), nil
}

// find returns the files with names like the pattern, in the order of their numbers.
func (a *archive) find(pattern string) (found []*zip.File) {
	for _, f := range a.files {
		if ok, _ := path.Match(pattern, f.Name); ok {
			found = append(found, f)
		}
	}
	number := func(f *zip.File) int {
		n, _ := strconv.Atoi(strings.TrimFunc(path.Base(f.Name), func(r rune) bool { return r < '0' || r > '9' }))
		return n
	}
	slices.SortFunc(found, func(x, y *zip.File) int { return number(x) - number(y) })
	return found
}

// tokens calls each for the tokens of a part.
func (a *archive) tokens(f *zip.File, each func(xml.Token) bool) error {
	r, err := f.Open()
	if err != nil {
		return errDamaged
	}
	defer r.Close()
	limited := &io.LimitedReader{R: r, N: a.left + 1}
	d := xml.NewDecoder(limited)
	for {
		t, err := d.RawToken()
		if limited.N <= 0 {
			return errBomb
		}
		if errors.Is(err, io.EOF) || err == nil && !each(t) {
			a.left = limited.N - 1
			return nil
		}
		if err != nil {
			return errDamaged
		}
	}
}

// sharedTexts reads the texts of a workbook, which its cells name by number.
func (a *archive) sharedTexts() error {
	for _, f := range a.find("xl/sharedStrings.xml") {
		inside := false
		if err := a.tokens(f, func(t xml.Token) bool {
			switch t := t.(type) {
			case xml.StartElement:
				if t.Name.Local == "si" {
					a.texts = append(a.texts, "")
				}
				inside = t.Name.Local == "t"
			case xml.EndElement:
				inside = false
			case xml.CharData:
				if inside && len(a.texts) > 0 {
					a.texts[len(a.texts)-1] += string(t)
				}
			}
			return true
		}); err != nil {
			return err
		}
	}
	return nil
}

// read adds the text of a part.
func (a *archive) read(f *zip.File, out *writer) error {
	inside, shared := 0, false
	return a.tokens(f, func(t xml.Token) bool {
		switch t := t.(type) {
		case xml.StartElement:
			switch t.Name.Local {
			case "c": // a cell of a workbook
				shared = slices.ContainsFunc(t.Attr, func(a xml.Attr) bool { return a.Name.Local == "t" && a.Value == "s" })
			case "tab":
				out.space("\t")
			case "br", "line-break":
				out.line()
			case "s":
				out.space(" ")
			}
			if isText(t.Name) {
				inside++
			}
		case xml.EndElement:
			switch t.Name.Local {
			case "p", "h", "row", "table-row":
				out.line()
			case "c", "tc", "table-cell":
				out.pending = strings.TrimRight(out.pending, "\n")
				out.space("\t")
			}
			if isText(t.Name) {
				inside--
			}
		case xml.CharData:
			if inside == 0 {
				break
			}
			text := string(t)
			if n, err := strconv.Atoi(text); shared && err == nil && n >= 0 && n < len(a.texts) {
				text = a.texts[n]
			}
			out.text(text)
		}
		return !out.full()
	})
}

// isText reports whether the characters in an element are text: w:t and a:t of Word and
// PowerPoint, t and v of Excel, text:p and text:h of OpenDocument.
func isText(n xml.Name) bool {
	switch n.Local {
	case "t", "v":
		return true
	case "p", "h":
		return n.Space == "text"
	}
	return false
}
