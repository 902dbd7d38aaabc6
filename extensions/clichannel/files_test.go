package clichannel

import (
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/clichannel/wire"
	"github.com/switchboard-run/switchboard/sdk"
)

// upload sends a file in two parts.
func (c *chat) upload(id, name, text string) {
	c.t.Helper()
	half := len(text) / 2
	c.write(wire.Frame{Type: wire.File, ID: id, Name: name, Data: []byte(text[:half])})
	c.write(wire.Frame{Type: wire.File, ID: id, Data: []byte(text[half:]), Done: true})
}

// fetch asks for a file and returns its text, or the refusal.
func (c *chat) fetch(reference string) (file contract.Attachment, text, refusal string) {
	c.t.Helper()
	id := wire.NewID()
	c.write(wire.Frame{Type: wire.Fetch, ID: id, Text: reference})
	for {
		f := c.read()
		switch {
		case f.ID != id:
			c.t.Fatalf("got %+v instead of file %s", f, reference)
		case f.Type == wire.Error:
			return file, text, f.Text
		case len(f.Attachments) == 1:
			file = f.Attachments[0]
		}
		text += string(f.Data)
		if f.Done {
			return file, text, ""
		}
	}
}

func digitsOf(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text)))[:6] }

func TestFilesComeWithTheirMessageAndCanBeSaved(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c, welcome := r.attach(wire.Frame{})
	if !welcome.Attach {
		t.Error("the channel takes no files")
	}
	long := strings.Repeat("milk and bread\n", 50_000)
	c.upload("1", "../../list.txt", long)
	c.upload("2", "song\x1b[2J.mp3", "ID3\x04\x00\x00\x00\x00\x00\x00")
	c.write(wire.Frame{Type: wire.Message, ID: "m", Text: "what is this?", Files: []string{"1", "2"}})
	c.expect(wire.Accepted)
	got := r.kernel.received()[0].Attachments
	if len(got) != 2 || got[0].Name != "list.txt" || got[0].Kind != contract.KindDocument || got[0].MIME != "text/plain" ||
		got[0].Size != int64(len(long)) || got[1].Name != "song[2J.mp3" || got[1].Kind != contract.KindAudio {
		t.Errorf("the message has %+v", got)
	}
	for _, reference := range []string{digitsOf(long), got[0].Blob, got[0].Reference(), "[photo " + digitsOf(long) + ": x.jpg]"} {
		file, text, refusal := c.fetch(reference)
		if file != got[0] || text != long {
			t.Errorf("%s is %+v of %d bytes: %q", reference, file, len(text), refusal)
		}
	}
	other, _ := r.attach(wire.Frame{Conversation: "other"})
	if _, _, refusal := other.fetch(digitsOf(long)); !strings.Contains(refusal, "there is no file") {
		t.Errorf("another conversation: %q", refusal)
	}
	if _, _, refusal := c.fetch("cat.jpg"); !strings.Contains(refusal, `"cat.jpg" is no file`) {
		t.Errorf("a name: %q", refusal)
	}
}

func TestFilesOfAnAgentCanBeSavedWhenTheyAreShown(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.kernel.files["3f2a9c"+strings.Repeat("0", 58)] = "a cat"
	c, _ := r.attach(wire.Frame{})
	cat := contract.Attachment{Kind: contract.KindImage, Name: "cat.jpg", Blob: "3f2a9c" + strings.Repeat("0", 58)}
	for id, sent := range []contract.Attachment{cat, {Kind: contract.KindDocument, Blob: cat.Blob}} { // the other of digits
		id := strconv.Itoa(id)
		done := r.send(sdk.Message{ID: id, Conversation: wire.DefaultConversation, Text: "look",
			Attachments: []contract.Attachment{sent}})
		if f := c.expect(wire.Message); len(f.Attachments) != 1 || f.Attachments[0] != cat {
			t.Fatalf("got %+v", f)
		}
		if file, text, refusal := c.fetch("3f2a9c"); file != cat || text != "a cat" {
			t.Errorf("the file is %+v %q %q", file, text, refusal)
		}
		c.write(wire.Frame{Type: wire.Shown, ID: id})
		if s := <-done; s.err != nil {
			t.Error(s.err)
		}
	}
}

func TestAFileThatIsRefusedRefusesItsMessage(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c, _ := r.attach(wire.Frame{})
	r.kernel.storing = func() error { return fmt.Errorf("%w: a file may have 50 MiB", contract.ErrTooLarge) }
	c.upload("1", "a", "too much")
	c.write(wire.Frame{Type: wire.Message, ID: "m1", Text: "x", Files: []string{"1"}})
	if f := c.expect(wire.Error); f.ID != "m1" || !strings.Contains(f.Text, "50 MiB") {
		t.Errorf("got %+v", f)
	}
	c.write(wire.Frame{Type: wire.Message, ID: "m2", Text: "x", Files: []string{"2"}})
	if f := c.expect(wire.Error); f.ID != "m2" || !strings.Contains(f.Text, "has not arrived") {
		t.Errorf("got %+v", f)
	}
	c.write(wire.Frame{Type: wire.Message, ID: "m3", Text: "without"})
	c.expect(wire.Accepted)
	if got := r.kernel.received(); len(got) != 1 || got[0].Text != "without" {
		t.Errorf("received %+v", got)
	}
}

// A terminal that breaks off sends its files again, and the message counts once.
func TestFilesAreSentAgainAfterAReconnect(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c, _ := r.attach(wire.Frame{})
	c.write(wire.Frame{Type: wire.File, ID: "1", Name: "a.txt", Data: []byte("half")})
	_ = c.raw.Close()
	for range 2 {
		c, _ = r.attach(wire.Frame{})
		c.upload("1", "a.txt", "half and half")
		c.write(wire.Frame{Type: wire.Message, ID: "m", Files: []string{"1"}})
		c.expect(wire.Accepted)
		_ = c.raw.Close()
	}
	got := r.kernel.received()
	if len(got) != 1 || len(got[0].Attachments) != 1 || got[0].Attachments[0].Size != int64(len("half and half")) {
		t.Errorf("received %+v", got)
	}
	if len(r.kernel.files) != 1 {
		t.Errorf("stored %d files", len(r.kernel.files))
	}
}

func TestOldFilesAreNotKept(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	now := time.Now()
	r.files.now = func() time.Time { return now }
	c, _ := r.attach(wire.Frame{})
	for i, text := range []string{"one", "two", "three", "four", "five"} {
		if i == 4 {
			now = now.Add(keepFiles + time.Second)
		}
		c.upload("1", "a.txt", text)
		c.write(wire.Frame{Type: wire.Message, ID: text, Files: []string{"1"}})
		c.expect(wire.Accepted)
	}
	if _, text, refusal := c.fetch(digitsOf("five")); text != "five" {
		t.Errorf("the new file: %q", refusal)
	}
	if _, _, refusal := c.fetch(digitsOf("two")); !strings.Contains(refusal, "older than 30 days") {
		t.Errorf("an old file: %q", refusal)
	}
	if n := len(r.kernel.values); n != 1 {
		t.Errorf("%d files are kept", n)
	}
}
