// Package attachment stores the files that people send with a message. It is for
// extensions that are channels.
package attachment

import (
	"bufio"
	"context"
	"io"
	"mime"
	"path"
	"strings"
	"unicode"

	"github.com/gabriel-vasile/mimetype"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk"
)

// Storage stores files; *sdk.Kernel is one.
type Storage interface {
	PutBlob(ctx context.Context, from io.Reader) (sdk.Blob, error)
}

// sniffed is how many bytes of a file decide its type.
const sniffed = 3072

// Store stores the file of an attachment and completes the attachment. Its type is that
// of the bytes, whatever the sender claims; a text may claim another type of text, such
// as text/csv. If the kind is not that of the bytes, it becomes an image or a document.
func Store(ctx context.Context, to Storage, a contract.Attachment, from io.Reader) (contract.Attachment, error) {
	all := bufio.NewReaderSize(from, 2*sniffed)
	head, _ := all.Peek(sniffed) // an error is repeated by the next read
	a.MIME = typeOf(head, a.MIME)
	a.Kind = kindOf(a.Kind, a.MIME)
	a.Name = Name(a.Name)
	b, err := to.PutBlob(ctx, all)
	a.Blob, a.Size = b.Hash, b.Size
	return a, err
}

// unknownType is that of bytes that tell nothing.
const unknownType = "application/octet-stream"

func typeOf(head []byte, claimed string) string {
	found, _, err := mime.ParseMediaType(mimetype.Detect(head).String())
	if err != nil {
		return unknownType
	}
	if found == "application/ogg" {
		found = "audio/ogg"
	}
	claimed, _, err = mime.ParseMediaType(claimed)
	if err == nil && found == "text/plain" && strings.HasPrefix(claimed, "text/") {
		return claimed
	}
	return found
}

// kindOf returns the kind of a file of a type that was sent as a kind.
func kindOf(kind, found string) string {
	family, _, _ := strings.Cut(found, "/")
	switch {
	case contract.IsImageType(found):
		return contract.KindImage
	case kind != contract.KindVoice && kind != contract.KindAudio && kind != contract.KindVideo:
	case family == "audio", family == "video", found == unknownType: // an MP4 may hold either
		return kind
	}
	return contract.KindDocument
}

// maxName is the most characters of a name.
const maxName = 100

// Name cleans the name of a file for people. It never names a place to write to.
func Name(name string) string {
	name = strings.ToValidUTF8(name, "")
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), !unicode.IsGraphic(r): // Cf: bidirectional marks
			return -1
		}
		return r
	}, name)
	name = strings.Trim(strings.Join(strings.Fields(name), " "), ".")
	characters := []rune(name)
	if over := len(characters) - maxName; over > 0 {
		end := []rune(path.Ext(name))
		if len(end) > 10 {
			end = nil
		}
		name = string(characters[:maxName-len(end)-1]) + "…" + string(end)
	}
	return name
}
