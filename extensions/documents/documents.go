// Package documents lets agents look at the files of their conversation: read_document
// returns the text of a document, and show_attachment brings an image back, which the run
// loop of package sdk/agent shows in the next request. Nothing is kept.
package documents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/document"
)

// ID is the extension's id.
const ID = "documents"

// The default and the largest part of a document in a result, in bytes.
const (
	defaultPart = 12 << 10
	maxPart     = contract.MaxToolResult - 1<<10
)

const schema = `{"type":"object","properties":{"reference":{"type":"string","minLength":6,` +
	`"description":"Such as 3f2a9c, or [image 3f2a9c: cat.jpg]."}%s},"required":["reference"],` +
	`"additionalProperties":false}`

// New returns the extension.
func New(r document.Reader) sdk.Extension {
	d := &documents{reader: r}
	return sdk.Extension{
		ID:    ID,
		Start: func(_ context.Context, k *sdk.Kernel) error { d.files = k; return nil },
		Tools: []sdk.Tool{{
			Name: "read_document", ReadOnly: true,
			Description: "Read the text of a document of this conversation, or more of it.",
			Schema: json.RawMessage(fmt.Sprintf(schema, `,"from":{"type":"integer","minimum":0,"description":`+
				`"The byte to begin with."},"max":{"type":"integer","minimum":100}`)),
			Call: d.read,
		}, {
			Name: "show_attachment", ReadOnly: true,
			Description: "See an image that was sent earlier in this conversation.",
			Schema:      json.RawMessage(fmt.Sprintf(schema, "")), Call: d.show,
		}},
	}
}

type documents struct {
	files  files
	reader document.Reader
}

// files are those of the session of a call; *sdk.Kernel has them.
type files interface {
	FindBlob(ctx context.Context, name string) (sdk.Blob, error)
	GetBlob(ctx context.Context, name string, to io.Writer) (sdk.Blob, error)
}

type arguments struct {
	Reference string `json:"reference"`
	From      int    `json:"from"`
	Max       int    `json:"max"`
}

// parse returns the arguments of a call, with the digits of the reference.
func parse(c sdk.ToolCall) (a arguments, err error) {
	if err := c.Decode(&a); err != nil {
		return a, err
	}
	file, err := contract.ParseReference(a.Reference)
	if err != nil {
		return a, fmt.Errorf("%q is no reference: write the digits of the file, such as 3f2a9c", a.Reference)
	}
	a.Reference = file.InSession()
	return a, nil
}

func (d *documents) read(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
	a, err := parse(c)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	text, err := d.reader.Read(ctx, func(to io.Writer) error {
		_, err := d.files.GetBlob(ctx, a.Reference, to)
		return err
	})
	switch {
	case errors.Is(err, document.ErrPicture):
		return sdk.ToolResult{}, errors.New("it is an image: show_attachment shows it")
	case err != nil:
		return sdk.ToolResult{}, fmt.Errorf("the document cannot be read: %w", err)
	case a.From >= len(text):
		return sdk.ToolResult{}, fmt.Errorf("the text has %d bytes: begin before its end", len(text))
	}
	if a.Max <= 0 {
		a.Max = defaultPart
	}
	return sdk.ToolResult{Content: part(text, a.Reference, a.From, min(a.Max, maxPart))}, nil
}

// part returns a part of a text, with a note of what is missing.
func part(text, reference string, from, most int) string {
	for from > 0 && from < len(text) && !utf8.RuneStart(text[from]) {
		from--
	}
	end := min(len(text), from+most)
	shown := strings.ToValidUTF8(text[from:end], "")
	if end < len(text) {
		shown += fmt.Sprintf("\n[bytes %d to %d of %d: read_document {reference: %s, from: %d} reads on]",
			from, from+len(shown), len(text), reference, from+len(shown))
	}
	return shown
}

// show checks that the file is there; the run loop shows it.
func (d *documents) show(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
	a, err := parse(c)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	if _, err := d.files.FindBlob(ctx, a.Reference); err != nil {
		return sdk.ToolResult{}, err
	}
	return sdk.ToolResult{Content: "The image follows the results."}, nil
}
