package contract

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"regexp"
	"strings"
)

// Kinds of an attachment. A channel may report others; they are shown by their name.
const (
	KindImage    = "image"
	KindAudio    = "audio"
	KindVoice    = "voice"
	KindVideo    = "video"
	KindDocument = "document"
	KindLocation = "location"
	KindContact  = "contact"
	KindSticker  = "sticker"
)

// IsImageType reports whether files of a MIME type are shown as images, to people and to
// models.
func IsImageType(mime string) bool {
	switch mime {
	case "image/jpeg", "image/png", "image/gif", "image/webp":
		return true
	}
	return false
}

// ReferenceDigits is how many digits of a blob's hash stand in a reference to it. Tools
// take these, or more of them.
const ReferenceDigits = 6

// Reference is how an attachment stands in the text of a conversation, such as
// "[image 3f2a9c: cat.jpg]". Without a stored file there are no digits in it.
func (a Attachment) Reference() string {
	digits := ""
	if len(a.Blob) >= ReferenceDigits {
		digits = " " + a.Blob[:ReferenceDigits]
	}
	name := strings.Map(func(r rune) rune {
		if r == '[' || r == ']' || r < ' ' {
			return ' '
		}
		return r
	}, a.Name)
	if name = strings.Join(strings.Fields(name), " "); name != "" {
		name = ": " + name
	}
	return fmt.Sprintf("[%s%s%s]", a.Kind, digits, name)
}

// WithReferences names the attachments of a text after it.
func WithReferences(text string, attachments []Attachment) string {
	for _, a := range attachments {
		text = strings.TrimSpace(text + "\n" + a.Reference())
	}
	return text
}

// SpokenMark stands in the text of an input between the reference to a voice message and
// its words, which end with the line.
const SpokenMark = " transcript: "

var reference = regexp.MustCompile(`^\[?(?:([a-z_]+) )?([0-9a-f]+)(?:: ?([^\[\]]*))?\]?$`)

// ParseReference reads a reference as Reference writes it, with or without its brackets,
// or the digits alone. The Blob of the attachment is what there is of its digits; its
// kind is KindDocument if the text has none. A text that is no reference to a stored file
// is an error, for the model or the person who wrote it.
func ParseReference(text string) (a Attachment, err error) {
	m := reference.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil || len(m[2]) < ReferenceDigits || len(m[2]) > 2*sha256.Size {
		return a, fmt.Errorf("%q is no file: write it as in the conversation, such as [image 3f2a9c: cat.jpg]", text)
	}
	return Attachment{Kind: cmp.Or(m[1], KindDocument), Blob: m[2], Name: strings.TrimSpace(m[3])}, nil
}

// InSession returns the name by which the kernel finds the file of a reference among those
// of the caller's session alone: never all digits, by which it would also find what the
// extension keeps for other people.
func (a Attachment) InSession() string { return a.Blob[:min(len(a.Blob), 2*sha256.Size-1)] }

// BlobsOf returns the blobs of attachments, each once, in their order.
func BlobsOf(all []Attachment) (hashes []string) {
	seen := map[string]bool{}
	for _, a := range all {
		if a.Blob != "" && !seen[a.Blob] {
			seen[a.Blob] = true
			hashes = append(hashes, a.Blob)
		}
	}
	return hashes
}
