package modelapitest

import (
	"bytes"
	"image"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// pictures are a JPEG and a PNG.
func pictures(t *testing.T) []*extensionv1.Image {
	t.Helper()
	picture := image.NewGray(image.Rect(0, 0, 16, 8))
	var j, p bytes.Buffer
	if err := jpeg.Encode(&j, picture, nil); err != nil {
		t.Fatal(err)
	}
	if err := png.Encode(&p, picture); err != nil {
		t.Fatal(err)
	}
	return []*extensionv1.Image{{Mime: "image/jpeg", Data: j.Bytes()}, {Mime: "image/png", Data: p.Bytes()}}
}

// withImages is a dialog whose user shows pictures, at first and after a call.
func withImages(t *testing.T, model string) *sdk.CompleteRequest {
	t.Helper()
	all := pictures(t)
	return &sdk.CompleteRequest{Model: model, Tools: []*extensionv1.Tool{{Name: "look"}}, Messages: []*extensionv1.Message{
		{Role: "user", Content: "what is this? \"\xff\"", Images: all},
		{Role: "assistant", Calls: []*busv1.Call{{CallId: "c1", Name: "look", Arguments: []byte(`{}`)}}},
		{Role: "tool", CallId: "c1", Content: "shown below"},
		{Role: "user", Content: "here", Images: all[:1]},
	}}
}

func (s Subject) images(t *testing.T) {
	f := s.start(t)
	f.Always(Say("two"))
	c := withKey(f.BaseURL())
	c.Vision = []string{"test-*"}
	server := s.connect(t, c, testKey)
	r := withImages(t, "test-model")
	if h, err := complete(t, server, r); err != nil || h.text != "two" {
		t.Fatalf("got %+v, %v", h, err)
	}
	got := f.Asked()[0].Images
	if len(got) != 3 || got[0].MIME != "image/jpeg" || got[1].MIME != "image/png" ||
		!bytes.Equal(got[2].Data, r.GetMessages()[0].GetImages()[0].GetData()) {
		t.Errorf("the server got %d images: %v", len(got), got)
	}
	for _, wrong := range []*extensionv1.Image{
		{Mime: "image/png", Data: got[0].Data}, {Mime: "image/jpeg", Data: got[0].Data[:40]}, {Mime: "image/svg+xml",
			Data: []byte("<svg/>")},
	} {
		i := Image{wrong.GetMime(), wrong.GetData()}
		if i.Wrong([]string{"png", "jpeg"}, 5<<20) == "" {
			t.Errorf("a server takes %s of %d bytes", i.MIME, len(i.Data))
		}
	}
}

// A model that cannot see gets sentences: by its name, by the configuration, or after
// the server has refused the images.
func (s Subject) unseenImages(t *testing.T) {
	for name, tt := range map[string]struct {
		model    string
		vision   []string
		blind    bool
		requests int
	}{
		"by name":              {model: "text-only", requests: 1},
		"by the configuration": {model: "gpt-4o", vision: []string{"none"}, requests: 1},
		"refused":              {model: "claude-gpt-4o", vision: []string{"*"}, blind: true, requests: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := s.start(t)
			f.Always(Say("I cannot see it."))
			if tt.blind {
				f.Blind()
			}
			c := withKey(f.BaseURL())
			c.Vision = tt.vision
			h, err := complete(t, s.connect(t, c, testKey), withImages(t, tt.model))
			if err != nil || h.text != "I cannot see it." {
				t.Fatalf("got %+v, %v", h, err)
			}
			all := f.Asked()
			if len(all) != tt.requests {
				t.Fatalf("%d requests", len(all))
			}
			last := all[len(all)-1]
			if len(last.Images) > 0 || !strings.Contains(last.Text, "sent 2 images that this model cannot see") ||
				!strings.Contains(last.Text, "here\n\n[The user sent an image that this model cannot see") {
				t.Errorf("asked with %d images: %s", len(last.Images), last.Text)
			}
		})
	}
}
