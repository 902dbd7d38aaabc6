package e2e

import (
	"bytes"
	"encoding/json"
	"image"
	"image/color"
	"image/jpeg"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
)

// postedFile is a file of a message of the probe poster.
type postedFile struct{ Path, Kind, Name, MIME string }

// withPoster drops a channel in that sends messages with files. The model can see.
func withPoster(w *world) {
	withModel(w)
	w.config("channels: {poster: {allow_from: [me]}}\nextensions: {openai: {config: {vision: [test-model]}}}")
	w.probe("poster", "poster", "provides: {channel: {}}\npermissions: {publish: [user.message], blobs: true}")
}

// post sends a message with files. Each is written first, unless it is nil.
func (w *world) post(text string, data []byte, files ...postedFile) {
	w.t.Helper()
	for _, f := range files {
		if data != nil {
			if err := os.WriteFile(w.file("data", "poster", f.Path), data, 0o600); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	line, err := json.Marshal(map[string]any{"text": text, "files": files})
	if err != nil {
		w.t.Fatal(err)
	}
	w.request("poster", "in", string(line))
}

// replyTo sends a message that replies to one of the assistant.
func (w *world) replyTo(quoted, text string) {
	w.t.Helper()
	line, err := json.Marshal(map[string]any{"text": text, "quote": contract.Quote{MessageID: "1", Text: quoted}})
	if err != nil {
		w.t.Fatal(err)
	}
	w.request("poster", "in", string(line))
}

// posterSent waits until the poster has sent a text.
func (w *world) posterSent(text string) {
	w.t.Helper()
	w.eventually("the answer "+text, func() bool { return strings.Contains(w.text("data", "poster", "out"), text) })
}

// photo is a JPEG whose metadata say where it was taken.
func photo(t *testing.T, width, height int) []byte {
	t.Helper()
	picture := image.NewRGBA(image.Rect(0, 0, width, height))
	for x := range width {
		for y := range height {
			picture.Set(x, y, color.RGBA{R: uint8(x), G: uint8(y), B: 90, A: 255})
		}
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, picture, nil); err != nil {
		t.Fatal(err)
	}
	place := "Exif\x00\x00MM\x00\x2a\x00\x00\x00\x08\x00\x00 GPS 52.5163 13.3777"
	segment := append([]byte{0xff, 0xe1, 0, byte(len(place) + 2)}, place...)
	return append(append(b.Bytes()[:2:2], segment...), b.Bytes()[2:]...)
}

func TestPhotoReachesTheModelInItsTurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withPoster)
	w.model.Queue(openaitest.Say("A gradient."), openaitest.Say("It was a gradient."))
	w.start()
	w.post("what is this?", photo(t, 2000, 1000), postedFile{"cat.jpg", "image", "cat.jpg", "image/jpeg"})
	w.posterSent("A gradient.")
	w.post("and again?", nil)
	w.posterSent("It was a gradient.")
	requests := w.model.Requests()
	if len(requests) != 2 {
		t.Fatalf("%d requests", len(requests))
	}
	images := requests[0].Images()
	if len(images) != 1 || images[0].MIME != "image/jpeg" || bytes.Contains(images[0].Data, []byte("52.5163")) {
		t.Fatalf("the model got %d images", len(images))
	}
	if c, err := jpeg.DecodeConfig(bytes.NewReader(images[0].Data)); err != nil || c.Width != 1568 || c.Height != 784 {
		t.Errorf("the image is %d x %d: %v", c.Width, c.Height, err)
	}
	if text := requests[0].Last("user"); !strings.Contains(text, "what is this?\n[image ") ||
		!strings.Contains(text, ": cat.jpg]") {
		t.Errorf("the model reads %q", text)
	}
	if images := requests[1].Images(); len(images) != 0 {
		t.Errorf("the next turn shows %d images", len(images))
	}
	if all := string(requests[1].Raw); !strings.Contains(all, ": cat.jpg]") {
		t.Errorf("the next turn does not name the image: %s", all)
	}
}

// A document comes with its turn, and a tool reads more of it; an image that was sent before
// is shown again. A file that claims another type, and one that cannot be read, is a sentence.
func TestDocumentsAreReadAndImagesShownAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withPoster)
	w.start()
	list := strings.Repeat("milk and bread\n", 2000) + "the end"
	var reference string
	w.model.Handle(func(r openaitest.Request) openaitest.Answer {
		switch last := r.Messages[len(r.Messages)-1]; {
		case strings.Contains(r.Last("user"), "read it all") && last.Role != "tool":
			return openaitest.CallTool("use_tool", map[string]any{"name": "documents/read_document",
				"arguments": map[string]any{"reference": reference, "from": len(list) - 20}})
		case strings.Contains(r.Last("user"), "look again") && last.Role != "tool":
			return openaitest.CallTool("use_tool", map[string]any{"name": "documents/show_attachment",
				"arguments": map[string]any{"reference": reference}})
		case last.Role == "tool":
			return openaitest.Say("got " + last.Content.Text)
		default:
			return openaitest.Say("seen " + r.Last("user"))
		}
	})
	last := func() openaitest.Request { all := w.model.Requests(); return all[len(all)-1] }
	digits := func(raw, kind string) string {
		all := regexp.MustCompile(`\[`+kind+` [^\]]*\]`).FindAllString(raw, -1) // descriptions of tools have examples
		a, _ := contract.ParseReference(all[len(all)-1])
		return a.Blob
	}

	w.post("shopping", []byte(list), postedFile{"list.pdf", "document", "list.pdf", "application/pdf"})
	w.posterSent("seen ")
	raw := string(last().Raw)
	if !strings.Contains(raw, "milk and bread") || strings.Contains(raw, "the end") || !strings.Contains(raw, "reads on") {
		t.Errorf("the model got %d bytes", len(raw))
	}
	reference = digits(raw, "document")
	w.post("read it all", nil)
	w.posterSent("the end")

	w.post("broken", []byte("PK\x05\x06"+strings.Repeat("\x00", 18)), postedFile{"x.docx", "document", "x.docx", ""})
	w.posterSent("cannot be read")

	w.post("a photo", photo(t, 40, 20), postedFile{"cat.jpg", "image", "cat.jpg", "image/jpeg"})
	w.eventually("the photo", func() bool { return len(last().Images()) == 1 })
	raw = string(last().Raw)
	reference = digits(raw, "image")
	w.post("look again", nil)
	w.posterSent("This is " + reference)
	if n := len(last().Images()); n != 1 {
		t.Errorf("the request has %d images", n)
	}
}

// A photo that is remembered is there in a later conversation, and over a crash.
func TestMemoryHoldsAPhoto(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withPoster)
	cat := regexp.MustCompile(`\[image [0-9a-f]{6}: cat.jpg\]`)
	use := func(tool string, arguments map[string]any) openaitest.Answer {
		return openaitest.CallTool("use_tool", map[string]any{"name": tool, "arguments": arguments})
	}
	w.model.Handle(func(r openaitest.Request) openaitest.Answer {
		last := r.Messages[len(r.Messages)-1]
		text, results := r.Last("user"), r.Results()
		switch {
		case strings.Contains(text, "remember this") && last.Role != "tool":
			return use("memory/remember", map[string]any{"text": "Rex is our cat", "attachments": []string{cat.FindString(text)}})
		case strings.Contains(transcript(r), "what does Rex look like?") && !strings.Contains(transcript(r), `"memories"`):
			return use("memory/recall", map[string]any{"query": "Rex"})
		case len(results) == 1 && strings.Contains(results[0], `"memories"`):
			return use("documents/show_attachment", map[string]any{"reference": cat.FindString(results[0])})
		default:
			return openaitest.Say("got " + last.Content.Text)
		}
	})
	w.start()
	w.post("remember this", photo(t, 40, 20), postedFile{"cat.jpg", "image", "cat.jpg", "image/jpeg"})
	w.posterSent("got ")
	w.post("/new", nil)
	w.posterSent("New conversation")
	w.settled()
	w.restart()
	w.post("what does Rex look like?", nil)
	w.posterSent("as you asked")
	all := w.model.Requests()
	if last := all[len(all)-1]; len(last.Images()) != 1 {
		t.Errorf("the last request has %d images: %s", len(last.Images()), last.Raw)
	}
	contains(t, "the export", w.must("memory", "export"), "- file: [image ", ": cat.jpg]")
	contains(t, "the list", w.must("memory", "list"), "Rex is our cat")
}
