package terminal

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/jpeg"
	"regexp"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/clichannel/wire"
	"github.com/switchboard-run/switchboard/sdk/picture"
)

func TestImagesAreShownWhereTheTerminalCan(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		env  string
		want graphics
	}{
		{"TERM=xterm-kitty", kittyGraphics},
		{"TERM=xterm-256color KITTY_WINDOW_ID=1", kittyGraphics},
		{"TERM=xterm-ghostty", kittyGraphics},
		{"TERM=xterm-256color TERM_PROGRAM=iTerm.app", itermGraphics},
		{"TERM=xterm-256color TERM_PROGRAM=WezTerm", itermGraphics},
		{"TERM=xterm-256color LC_TERMINAL=iTerm2", itermGraphics},
		{"TERM=xterm-256color", noGraphics},
		{"TERM=xterm-256color TERM_PROGRAM=Apple_Terminal", noGraphics},
		{"TERM=xterm-kitty NO_COLOR=1", noGraphics},
		{"TERM=dumb KITTY_WINDOW_ID=1", noGraphics},
		{"KITTY_WINDOW_ID=1", noGraphics},
		{"TERM=xterm-kitty TMUX=/tmp/tmux", noGraphics},
		{"TERM=tmux-256color KITTY_WINDOW_ID=1", noGraphics},
	} {
		env := map[string]string{}
		for pair := range strings.FieldsSeq(tc.env) {
			name, value, _ := strings.Cut(pair, "=")
			env[name] = value
		}
		if got := graphicsOf(func(name string) string { return env[name] }); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.env, got, tc.want)
		}
	}
}

func jpegOf(t *testing.T, width, height int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, image.NewRGBA(image.Rect(0, 0, width, height)), nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestEncodedImages(t *testing.T) {
	t.Parallel()
	p := picture.Picture{MIME: "image/jpeg", Data: jpegOf(t, 300, 210), Width: 300, Height: 210}
	text, err := kittyGraphics.encode(p, 30, 20)
	if err != nil || !strings.HasPrefix(text, "\x1b_Ga=T,f=100,q=2,r=11,m=") || !strings.HasSuffix(text, "\x1b\\") {
		t.Errorf("kitty: %.60q %v", text, err)
	}
	sequence := regexp.MustCompile("\x1b_G[^;]*;([^\x1b]*)\x1b\\\\")
	if rest := sequence.ReplaceAllString(text, ""); rest != "" {
		t.Errorf("kitty: %.60q is in no sequence", rest)
	}
	var data string
	for _, m := range sequence.FindAllStringSubmatch(text, -1) {
		if len(m[1]) > kittyChunk {
			t.Errorf("a sequence has %d bytes", len(m[1]))
		}
		data += m[1]
	}
	decoded, err := base64.StdEncoding.DecodeString(data)
	if c, format, err2 := image.DecodeConfig(bytes.NewReader(decoded)); err != nil || err2 != nil || format != "png" || c.Width != 300 {
		t.Errorf("kitty: %s %+v %v %v", format, c, err, err2)
	}
	text, err = itermGraphics.encode(p, 5, 20)
	if err != nil || !strings.HasPrefix(text, "\x1b]1337;File=inline=1;") || !strings.Contains(text, ";height=5;") ||
		!strings.HasSuffix(text, base64.StdEncoding.EncodeToString(p.Data)+"\a") {
		t.Errorf("iTerm2: %.60q %v", text, err)
	}
}

// An image of an agent is shown below its name, and what claims to be one is only named.
func TestChatShowsImages(t *testing.T) {
	for name, value := range map[string]string{"TERM": "xterm-kitty", "NO_COLOR": "", "TMUX": "", "STY": ""} {
		t.Setenv(name, value)
	}
	c := openConsole(t, func(o *Options) { o.Color = ColorAlways })
	p := c.attachWithFiles(true)
	for id, file := range map[string]string{"a": string(jpegOf(t, 3000, 20)), "b": "no image"} {
		p.write(wire.Frame{Type: wire.Message, ID: id, Text: "look", Attachments: []contract.Attachment{cat}})
		f := p.read()
		for ; f.Type != wire.Fetch; f = p.read() {
			if f.Type != wire.Shown {
				t.Fatalf("got %+v", f)
			}
		}
		p.write(wire.Frame{Type: wire.File, ID: f.ID, Attachments: []contract.Attachment{cat}, Data: []byte(file), Done: true})
	}
	p.write(wire.Frame{Type: wire.Message, ID: "c", Text: "the end"})
	c.await("the end", func([]string) bool { return strings.Contains(c.bytes.String(), "the end") })
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := strings.Count(c.bytes.String(), "\x1b_Ga=T"); n != 1 {
		t.Errorf("%d images are shown", n)
	}
}
