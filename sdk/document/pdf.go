package document

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ledongthuc/pdf"
)

const (
	// maxPages is how many pages of a PDF are read, and maxTime how long, so that the
	// pages read until then are not lost.
	maxPages = 200
	maxTime  = Timeout / 2
)

// pdfText returns the text of the first pages. One that is broken is left out.
func pdfText(file []byte) (string, error) {
	r, err := pdf.NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		if strings.Contains(err.Error(), "password") {
			return "", errors.New("it is encrypted: send it without a password")
		}
		return "", errors.New("its file is damaged or incomplete")
	}
	pages := r.NumPage()
	var out strings.Builder
	page, began := 1, time.Now()
	for ; page <= min(pages, maxPages) && out.Len() <= MaxText && time.Since(began) < maxTime; page++ {
		if text := strings.TrimSpace(pageText(r, page)); text != "" {
			fmt.Fprintf(&out, "[page %d of %d]\n%s\n\n", page, pages, text)
		}
	}
	switch {
	case out.Len() == 0:
		return "", errors.New("there is no text in it; its pages may be scanned")
	case page <= pages:
		fmt.Fprintf(&out, "[the other %d pages are not read]", pages-page+1)
	}
	return out.String(), nil
}

func pageText(r *pdf.Reader, number int) (text string) {
	defer func() {
		if recover() != nil { // the library's, for what is damaged
			text = ""
		}
	}()
	p := r.Page(number)
	if p.V.IsNull() {
		return ""
	}
	text, _ = p.GetPlainText(nil) // what was read before an error
	return text
}
