package attachment

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk"
)

// storing is a Storage that remembers its last file.
type storing struct{ got string }

func (s *storing) PutBlob(_ context.Context, from io.Reader) (sdk.Blob, error) {
	b, err := io.ReadAll(from)
	s.got = string(b)
	return sdk.Blob{Hash: "abc", Size: int64(len(b))}, err
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestTheTypeIsThatOfTheBytes(t *testing.T) {
	t.Parallel()
	const png, exe, ogg = "\x89PNG\r\n\x1a\n", "MZ\x90\x00", "OggS\x00\x02\x00\x00OpusHead"
	for name, tc := range map[string]struct{ kind, mime, bytes, wantKind, wantMIME string }{
		"a photo":                      {"image", "", png, "image", "image/png"},
		"a program that claims a type": {"image", "image/jpeg", exe, "document", "application/vnd.microsoft.portable-executable"},
		"an image sent as a document":  {"document", "application/pdf", png, "image", "image/png"},
		"a table":                      {"document", "text/csv", "a,b", "document", "text/csv"},
		"a text that claims a PDF":     {"document", "application/pdf", "hello", "document", "text/plain"},
		"SVG is no picture":            {"image", "image/png", `<svg xmlns="http://www.w3.org/2000/svg"/>`, "document", "image/svg+xml"},
		"a voice note":                 {"voice", "audio/ogg", ogg, "voice", "audio/ogg"},
		"a video without sound":        {"video", "", "\x00\x00\x00\x18ftypmp42", "video", "video/mp4"},
		"a page that claims a video":   {"video", "video/mp4", "<html><script>", "document", "text/html"},
		"nothing":                      {"document", "", "", "document", "text/plain"},
	} {
		s := &storing{}
		a, err := Store(t.Context(), s, contract.Attachment{Kind: tc.kind, MIME: tc.mime}, strings.NewReader(tc.bytes))
		if err != nil || a.Kind != tc.wantKind || a.MIME != tc.wantMIME || a.Blob != "abc" || a.Size != int64(len(tc.bytes)) ||
			s.got != tc.bytes {
			t.Errorf("%s: %+v, %v, stored %q", name, a, err, s.got)
		}
	}
}

func TestAFileThatBreaksOffIsAnError(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 10, sniffed, 3 * sniffed} {
		from := io.MultiReader(strings.NewReader(strings.Repeat("x", size)), failing{io.ErrUnexpectedEOF})
		if _, err := Store(t.Context(), &storing{}, contract.Attachment{}, from); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("after %d bytes: %v", size, err)
		}
	}
}

func TestNamesAreCleaned(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"cat.jpg":                          "cat.jpg",
		"../../etc/passwd":                 "passwd",
		`C:\Users\anna\a.txt`:              "a.txt",
		"..":                               "",
		"a\x00\x1b[31mb\nc.txt":            "a[31mb c.txt",
		"photo\u202egnp.exe":               "photognp.exe",
		"\xff\xfe.txt":                     "txt",
		"отчёт за май.pdf":                 "отчёт за май.pdf",
		strings.Repeat("я", 200) + ".docx": strings.Repeat("я", 94) + "….docx",
	} {
		if got := Name(name); got != want {
			t.Errorf("Name(%q) = %q, want %q", name, got, want)
		}
	}
}
