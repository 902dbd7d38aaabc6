package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// holds adds a picture to the files of the session, and returns an input that shows it.
func (w *world) holds(t *testing.T, name string) contract.AgentInput {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, image.NewGray(image.Rect(0, 0, 8, 8)), nil); err != nil {
		t.Fatal(err)
	}
	if w.files == nil {
		w.files = map[string][]byte{}
	}
	w.files[name] = b.Bytes()
	a := contract.Attachment{Kind: contract.KindImage, Name: "cat.jpg", Blob: name, MIME: "image/jpeg"}
	in := user("look " + a.Reference())
	in.Attachments = []contract.Attachment{a}
	return in
}

// shownIn returns how many images each message of the user has.
func shownIn(r *kernelv1.CompleteRequest) (counts []int) {
	for _, m := range r.GetMessages()[1:] {
		if m.GetRole() == "user" {
			counts = append(counts, len(m.GetImages()))
		}
	}
	return counts
}

// inOrder gives its answers one after the other.
func inOrder(answers ...*said) func(context.Context, *kernelv1.CompleteRequest, func(*sdk.Delta) error) error {
	return func(_ context.Context, _ *kernelv1.CompleteRequest, emit func(*sdk.Delta) error) error {
		if len(answers) == 0 {
			return errors.New("the script is over")
		}
		answer := answers[0]
		answers = answers[1:]
		return answer.emit(emit)
	}
}

const cat = "3f2a9c0000"

func TestPictureIsShownInItsTurn(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.tool("clock/now", true)
	w.model = inOrder(calls("clock__now"), text("a cat"), text("it was a cat"))
	a := w.agent(t, &extensionv1.AgentSpec{})
	in := w.holds(t, cat)
	for i, in := range []contract.AgentInput{in, user("what was it?")} {
		if err := w.deliver(t.Context(), a, input(fmt.Sprintf("e%d", i), in)); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []string{"[1]", "[1]", "[0 0]"} {
		if got := fmt.Sprint(shownIn(w.requests[i])); got != want {
			t.Errorf("request %d shows %s, want %s", i, got, want)
		}
	}
	if n := strings.Count(strings.Join(w.rpcs, " "), "blob"); n != 1 {
		t.Errorf("the file was read %d times", n)
	}
	if row := w.rows[0]; len(row.GetAttachments()) != 1 || !strings.Contains(row.GetText(), "[image 3f2a9c: cat.jpg]") {
		t.Errorf("the history has %v", row)
	}
}

func TestPictureIsShownAfterACrash(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.tool("clock/now", true)
	w.model = inOrder(calls("clock__now"), text("a cat"))
	in := input("e1", w.holds(t, cat))
	w.fault = func(point string) bool { return point == "after call" }
	if err := w.deliver(t.Context(), w.agent(t, &extensionv1.AgentSpec{}), in); err == nil {
		t.Fatal("the process did not die")
	}
	w.fault, w.dead = nil, false
	if err := w.deliver(t.Context(), w.agent(t, &extensionv1.AgentSpec{}), in); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(shownIn(w.requests[len(w.requests)-1])); got != "[1]" {
		t.Errorf("the resumed turn shows %s", got)
	}
}

func TestPictureThatCannotBeShownIsASentence(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		file []byte
		says string
	}{
		"gone":    {nil, "there is no file"},
		"broken":  {[]byte("\xff\xd8\xff\xe0 and no more"), "damaged or incomplete"},
		"another": {[]byte("<svg onload='x'/>"), "not a JPEG, PNG, GIF or WebP picture"},
	} {
		w := newWorld()
		w.model = inOrder(text("sorry"))
		in := w.holds(t, cat)
		delete(w.files, cat)
		if tt.file != nil {
			w.files[cat] = tt.file
		}
		w.one(t, &extensionv1.AgentSpec{}, in)
		m := w.requests[0].GetMessages()[1]
		if len(m.GetImages()) > 0 || !strings.Contains(m.GetContent(), "You cannot see [image 3f2a9c: cat.jpg]: ") ||
			!strings.Contains(m.GetContent(), tt.says) {
			t.Errorf("%s: the model reads %q", name, m.GetContent())
		}
	}
}

func TestOnlyTheNewestPicturesAreShown(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.model = inOrder(text("many"))
	in := user("look")
	for i := range maxPictures + 2 {
		one := w.holds(t, fmt.Sprintf("%06d", i))
		in.Attachments = append(in.Attachments, one.Attachments...)
	}
	w.one(t, &extensionv1.AgentSpec{}, in)
	m := w.requests[0].GetMessages()[1]
	if len(m.GetImages()) != maxPictures || strings.Count(m.GetContent(), "only the newest pictures") != 2 ||
		!strings.Contains(m.GetContent(), "You cannot see [image 000001: cat.jpg]") {
		t.Errorf("%d images, %q", len(m.GetImages()), m.GetContent())
	}
}

func TestImageIsShownAgain(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.tool(contract.ToolShow, true)
	show := calls(WireName(contract.ToolShow))
	show.calls[0].Arguments = []byte(`{"reference": "[image 3f2a9c: cat.jpg]"}`)
	w.model = inOrder(text("a cat"), show, text("still a cat"), text("bye"))
	a := w.agent(t, &extensionv1.AgentSpec{})
	in := w.holds(t, cat)
	w.files["3f2a9c"] = w.files[cat]
	for i, in := range []contract.AgentInput{in, user("look again"), user("bye")} {
		if err := w.deliver(t.Context(), a, input(fmt.Sprintf("e%d", i), in)); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []string{"[1]", "[0 0]", "[0 0 1]", "[0 0 0]"} {
		if got := fmt.Sprint(shownIn(w.requests[i])); got != want {
			t.Errorf("request %d shows %s, want %s", i, got, want)
		}
	}
	last := w.requests[2].GetMessages()
	if m := last[len(last)-1]; m.GetRole() != "user" || !strings.Contains(m.GetContent(), "This is 3f2a9c") {
		t.Errorf("the image comes with %v", m)
	}
}

func TestDocumentIsReadInItsTurn(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.model = inOrder(text("a list"), text("it was a list"))
	w.files = map[string][]byte{
		"aaaaaa11": []byte("milk\nbread"), "bbbbbb22": []byte(strings.Repeat("long ", maxDocument)),
		"cccccc33": []byte("PK\x05\x06" + strings.Repeat("\x00", 18)),
	}
	in := user("read")
	for name := range w.files {
		in.Attachments = append(in.Attachments, contract.Attachment{Kind: contract.KindDocument, Blob: name, Name: "f"})
	}
	a := w.agent(t, &extensionv1.AgentSpec{})
	for i, in := range []contract.AgentInput{in, user("and?")} {
		if err := w.deliver(t.Context(), a, input(fmt.Sprintf("e%d", i), in)); err != nil {
			t.Fatal(err)
		}
	}
	first, second := fmt.Sprint(w.requests[0].GetMessages()), fmt.Sprint(w.requests[1].GetMessages())
	for _, want := range []string{"context from documents", "<[document aaaaaa: f]>", "milk", "from: 16384} reads on",
		"<[document cccccc: f]>", "cannot be read"} {
		if !strings.Contains(first, want) || strings.Contains(second, want) {
			t.Errorf("%q: in the turn %t, later %t", want, strings.Contains(first, want), strings.Contains(second, want))
		}
	}
}

// A message that interrupts a turn shows its own pictures; then the other turn shows its
// own again.
func TestPicturesOfAnInterruptedTurn(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.tool("clock/now", true)
	w.model = inOrder(calls("clock__now"), text("a dog"), text("a cat"))
	first, second := w.holds(t, cat), w.holds(t, "d06000")
	w.run["clock/now"] = func(context.Context, *busv1.Call) (*extensionv1.CallResult, error) {
		w.waiting = []*busv1.Event{input("e2", second)}
		return &extensionv1.CallResult{Content: "noon"}, nil
	}
	if err := w.deliver(t.Context(), w.agent(t, &extensionv1.AgentSpec{}), input("e1", first)); err != nil {
		t.Fatal(err)
	}
	if len(w.requests) != 3 {
		t.Fatalf("%d requests", len(w.requests))
	}
	for i, want := range []string{"[1]", "[0 1]", "[1 0 0]"} {
		if got := fmt.Sprint(shownIn(w.requests[i])); got != want {
			t.Errorf("request %d shows %s, want %s", i, got, want)
		}
	}
}
