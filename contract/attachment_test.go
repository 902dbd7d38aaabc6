package contract

import (
	"slices"
	"strings"
	"testing"
)

var catHash = "3f2a9c" + strings.Repeat("0", 58)

func TestAReferenceIsReadAsItIsWritten(t *testing.T) {
	t.Parallel()
	for want, a := range map[string]Attachment{
		"[image 3f2a9c: cat.jpg]":          {Kind: KindImage, Blob: catHash, Name: "cat.jpg"},
		"[voice 3f2a9c]":                   {Kind: KindVoice, Blob: catHash},
		"[document 3f2a9c: a b c.pdf]":     {Kind: KindDocument, Blob: catHash, Name: " a\n[b]  c.pdf"},
		"[location: 52.52, 13.40]":         {Kind: KindLocation, Name: "52.52, 13.40"},
		"[video_note 3f2a9c]":              {Kind: "video_note", Blob: catHash},
		"[document 3f2a9c: ../etc/пароль]": {Kind: KindDocument, Blob: catHash, Name: "../etc/пароль"},
	} {
		if got := a.Reference(); got != want {
			t.Errorf("the reference is %q, want %q", got, want)
		}
		back, err := ParseReference(want)
		ok := err == nil
		if ok != (a.Blob != "") {
			t.Errorf("%q is a reference to a file: %t", want, ok)
		}
		if ok && (back.Kind != a.Kind || back.Blob != "3f2a9c" || back.Reference() != want) {
			t.Errorf("%q is read as %+v", want, back)
		}
	}
	for text, want := range map[string]Attachment{
		"3f2a9c":                  {Kind: KindDocument, Blob: "3f2a9c"},
		"image 3f2a9c: cat.jpg\n": {Kind: KindImage, Blob: "3f2a9c", Name: "cat.jpg"},
		catHash:                   {Kind: KindDocument, Blob: catHash},
	} {
		if a, err := ParseReference(text); err != nil || a != want {
			t.Errorf("%q is read as %+v, %v", text, a, err)
		}
	}
	for _, text := range []string{"", "cat.jpg", "3f2a9", "[image]", "3F2A9C", "image", "[image 3f2a9c: a] [b]"} {
		if a, err := ParseReference(text); err == nil {
			t.Errorf("%q is read as %+v", text, a)
		}
	}
}

func TestBlobsOfNamesEachOnce(t *testing.T) {
	t.Parallel()
	got := BlobsOf([]Attachment{{Blob: "a"}, {Name: "none"}, {Blob: "b"}, {Blob: "a"}})
	if !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("%q", got)
	}
}
