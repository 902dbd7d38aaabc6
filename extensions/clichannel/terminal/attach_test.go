package terminal

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/clichannel/wire"
)

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// expectFile reads the parts of a file.
func (p *peer) expectFile() (id, name, text string) {
	p.t.Helper()
	for {
		f := p.expect(wire.File)
		if id != "" && f.ID != id {
			p.t.Fatalf("got a part of %s in file %s", f.ID, id)
		}
		id, name, text = f.ID, name+f.Name, text+string(f.Data)
		if f.Done {
			return id, name, text
		}
	}
}

func TestPathsOfALine(t *testing.T) {
	dir := t.TempDir() + "/"
	t.Setenv("HOME", dir)
	for _, name := range []string{"cat.jpg", "dog.jpg", "my photo (1).jpg", "it's.txt", `back\slash`} {
		writeFile(t, dir+name, "x")
	}
	for line, want := range map[string][]string{
		dir + "cat.jpg":                                        {dir + "cat.jpg"},
		"~/cat.jpg":                                            {dir + "cat.jpg"},
		"'" + dir + "cat.jpg' ":                                {dir + "cat.jpg"},
		dir + "my photo (1).jpg":                               {dir + "my photo (1).jpg"},
		dir + `my\ photo\ \(1\).jpg`:                           {dir + "my photo (1).jpg"},
		`"~/my photo (1).jpg"`:                                 {dir + "my photo (1).jpg"},
		"'" + dir + `it'\''s.txt'`:                             {dir + "it's.txt"},
		`"` + dir + `it's.txt"`:                                {dir + "it's.txt"},
		dir + `back\slash`:                                     {dir + `back\slash`},
		"file://" + dir + "my%20photo%20(1).jpg":               {dir + "my photo (1).jpg"},
		dir + "cat.jpg " + dir + "dog.jpg":                     {dir + "cat.jpg", dir + "dog.jpg"},
		"'" + dir + "cat.jpg' '" + dir + "my photo (1).jpg'":   {dir + "cat.jpg", dir + "my photo (1).jpg"},
		"file://" + dir + "cat.jpg\nfile://" + dir + "dog.jpg": {dir + "cat.jpg", dir + "dog.jpg"},
	} {
		clean := func(all []string) (out []string) {
			for _, p := range all {
				out = append(out, filepath.Clean(p))
			}
			return out
		}
		if got := clean(pathsOf(line)); !slices.Equal(got, clean(want)) {
			t.Errorf("%q names %q, want %q", line, got, want)
		}
		if got := clean(dropped(line)); !slices.Equal(got, clean(want)) {
			t.Errorf("dropping %q names %q, want %q", line, got, want)
		}
	}
	for _, line := range []string{
		"cat.jpg", "what is " + dir + "cat.jpg", dir + "cat.jpg is a cat", dir, dir + "no.jpg", "/", "~", "", "'", `"/`, "/dev/null",
		dir + "cat.jpg\nwhat is this?", dir + "cat.jpg " + dir + "no.jpg", "file://elsewhere" + dir + "cat.jpg",
	} {
		if got := dropped(line); got != nil {
			t.Errorf("%q is not sent as text but as %q", line, got)
		}
	}
}

func TestFilesThatCannotBeAttached(t *testing.T) {
	t.Parallel()
	dir := t.TempDir() + "/"
	writeFile(t, dir+"empty", "")
	writeFile(t, dir+"large", strings.Repeat("x", 2001))
	writeFile(t, dir+"secret", "x")
	if err := os.Chmod(dir+"secret", 0); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(dir+"pipe", 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir+"loop", dir+"loop"); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		dir + "no\x1b[2J":   "there is no file " + dir + "no",
		dir + "large/below": "there is no file",
		dir:                 "is a folder: name the files in it",
		dir + "pipe":        "isn't an ordinary file",
		"/dev/zero":         "isn't an ordinary file",
		dir + "empty":       "is empty",
		dir + "large":       "is larger than 2.0 KiB",
		dir + "loop":        "can't be read: too many levels of symbolic links",
		dir + "secret":      "you may not read",
	} {
		f, err := openFile(path, 2000)
		if f != nil {
			f.close()
		}
		if path == dir+"secret" && os.Geteuid() == 0 { // root may
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}

func TestChatAttachesFiles(t *testing.T) {
	t.Parallel()
	c := openConsole(t, nil)
	p := c.attachWithFiles(true)
	dir := shortDir(t)
	long := strings.Repeat("x", wire.Chunk+5)
	writeFile(t, dir+"a.txt", "first")
	writeFile(t, dir+"b.txt", long)
	c.press("/attach " + dir + "a.txt\r")
	c.see("› /attach "+dir+"a.txt", "  attached: a.txt, 5 B (Enter sends it, /detach removes it)", "›")
	c.press("/attach " + dir + "no.txt\r")
	c.see("✗ there is no file "+dir+"no.txt", "  attached: a.txt, 5 B (Enter sends it, /detach removes it)", "›")
	c.press("'" + dir + "b.txt' \r") // dropped
	c.await("both files", func(lines []string) bool {
		return strings.Contains(strings.Join(lines, ""), "a.txt, 5 B; b.txt, 262 kB")
	})
	c.press("/status\r") // takes no files
	m := p.expect(wire.Message)
	if m.Text != "/status" || m.Files != nil {
		t.Errorf("sent %+v", m)
	}
	p.answer(m, "all is well")
	c.press("what are these?\r")
	id1, name1, text1 := p.expectFile()
	id2, name2, text2 := p.expectFile()
	if name1 != "a.txt" || text1 != "first" || name2 != "b.txt" || text2 != long {
		t.Errorf("sent %q %q, %q of %d bytes", name1, text1, name2, len(text2))
	}
	m = p.expect(wire.Message)
	if m.Text != "what are these?" || !slices.Equal(m.Files, []string{id1, id2}) {
		t.Errorf("sent %+v", m)
	}
	p.answer(m, "two files")
	c.see("› what are these?", "  + a.txt, 5 B; b.txt, 262 kB", "● two files", "", "›")
	c.press("/attach " + dir + "a.txt\r\r") // and no text
	if _, _, text := p.expectFile(); text != "first" {
		t.Errorf("sent %q", text)
	}
	if m := p.expect(wire.Message); m.Text != "" || len(m.Files) != 1 {
		t.Errorf("sent %+v", m)
	}
	c.press("/attach " + dir + "a.txt\r/detach\r/detach\r")
	c.see("  The next message has no files now.", "› /detach", "  Nothing is attached.", "  sending …", "›")
	c.press("done\r")
	if m := p.expect(wire.Message); m.Text != "done" || m.Files != nil {
		t.Errorf("sent %+v", m)
	}
}

// shortDir is a directory whose names fit in a line of the screen.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "at")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir + "/"
}

// attachWithFiles is attach with a channel that takes files, or is older.
func (c *console) attachWithFiles(takes bool) *peer {
	c.t.Helper()
	p := c.accept()
	p.write(wire.Frame{Type: wire.Welcome, Version: wire.Version, Conversation: wire.DefaultConversation, Text: "a test model",
		Commands: "status new", Attach: takes})
	c.await("a welcome", func([]string) bool {
		all := c.bytes.String()
		return strings.Contains(all, "a test model") || strings.Contains(all, "reconnected")
	})
	return p
}

// A message whose connection breaks is sent again with its files, also if their names are
// gone by then.
func TestChatSendsFilesAgain(t *testing.T) {
	t.Parallel()
	c := openConsole(t, nil)
	p := c.attachWithFiles(true)
	dir := shortDir(t)
	writeFile(t, dir+"a.txt", "first")
	c.press("/attach " + dir + "a.txt\r")
	c.see("  attached: a.txt, 5 B (Enter sends it, /detach removes it)", "›")
	if err := os.Remove(dir + "a.txt"); err != nil {
		t.Fatal(err)
	}
	c.press("look\r")
	p.expectFile()
	_ = p.conn.Close()
	p = c.attachWithFiles(true)
	if _, name, text := p.expectFile(); name != "a.txt" || text != "first" {
		t.Errorf("sent %q: %q", name, text)
	}
	p.answer(p.expect(wire.Message), "seen")
	c.see("● seen", "", "›")
}

func TestChatSendsNoFilesToAnOlderChannel(t *testing.T) {
	t.Parallel()
	c := openConsole(t, nil)
	p := c.attachWithFiles(false)
	dir := shortDir(t)
	writeFile(t, dir+"a.txt", "first")
	c.press("/attach " + dir + "a.txt\rlook\r")
	c.await("a refusal", func(lines []string) bool {
		return strings.Contains(strings.Join(lines, ""), "the running kernel is older and takes no files")
	})
	c.press("without\r")
	if m := p.expect(wire.Message); m.Text != "without" {
		t.Errorf("sent %+v", m)
	}
}

var cat = contract.Attachment{Kind: contract.KindImage, Name: "../cat.jpg", Blob: "3f2a9c" + strings.Repeat("0", 58), Size: 5}

// serveFile answers a request for the file.
func (p *peer) serveFile(text string) wire.Frame {
	p.t.Helper()
	f := p.expect(wire.Fetch)
	p.write(wire.Frame{Type: wire.File, ID: f.ID, Attachments: []contract.Attachment{cat}})
	p.write(wire.Frame{Type: wire.File, ID: f.ID, Data: []byte(text)})
	p.write(wire.Frame{Type: wire.File, ID: f.ID, Done: true})
	return f
}

func TestChatSavesFiles(t *testing.T) {
	t.Parallel()
	c := openConsole(t, nil)
	p := c.attachWithFiles(true)
	p.write(wire.Frame{Type: wire.Message, ID: "1", Text: "look", Attachments: []contract.Attachment{cat}})
	p.expect(wire.Shown)
	c.see("● look", "  [image 3f2a9c: ../cat.jpg] 5 B · /save 3f2a9c", "", "›")
	dir := shortDir(t)
	for _, step := range []struct{ line, want, path, text string }{
		{"/save 3f2a9c " + dir, "  saved: " + dir + "cat.jpg, 5 B", "cat.jpg", "a cat"},
		{"/save [image 3f2a9c: cat.jpg] " + dir, "  saved: " + dir + "cat (2).jpg, 5 B", "cat (2).jpg", "a cat"},
		{"/save 3f2a9c '" + dir + "my cat.jpg'", "  saved: " + dir + "my cat.jpg, 5 B", "my cat.jpg", "a cat"},
		{"/save 3f2a9c " + dir + "cat.jpg", "exists: choose another name", "cat.jpg", "a cat"},
		{"/save -f 3f2a9c " + dir + "cat.jpg", "  saved: " + dir + "cat.jpg, 7 B", "cat.jpg", "another"},
		{"/save 3f2a9c " + dir + "no/cat.jpg", "there is no folder " + dir + "no", "cat.jpg", "another"},
		{"/save 3f2a9c " + dir + "new/", "there is no folder " + dir + "new", "cat.jpg", "another"},
	} {
		c.press(step.line + "\r")
		p.serveFile(step.text)
		c.await(step.want, func([]string) bool { return strings.Contains(c.bytes.String(), step.want) })
		if b, err := os.ReadFile(dir + step.path); err != nil || string(b) != step.text {
			t.Errorf("%s: the file is %q, %v", step.line, b, err)
		}
	}
	c.press("/save 3f2a9c " + dir + "new.jpg\r")
	f := p.expect(wire.Fetch)
	p.write(wire.Frame{Type: wire.File, ID: f.ID, Attachments: []contract.Attachment{cat}, Data: []byte("half")})
	_ = p.conn.Close()
	c.await("the reason", func(lines []string) bool {
		return strings.Contains(strings.Join(lines, ""), "not saved: the connection to the kernel broke")
	})
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 3 {
		t.Errorf("left are %v, %v", entries, err)
	}
}

func TestFilterAttachesAndSaves(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	writeFile(t, dir+"a.txt", "first")
	s := newStub(t)
	var out, complaints strings.Builder
	result := make(chan error, 1)
	go func() {
		result <- filter(t.Context(), Options{
			Socket: s.path, Out: &out, Err: &complaints, ConnectTimeout: patience, AnswerTimeout: patience,
			In: strings.NewReader("/attach " + dir + "a.txt\nwhat is this?\n/save 3f2a9c " + dir + "\n/attach " + dir + "a.txt\n"),
		})
	}()
	p := s.accept()
	p.write(wire.Frame{Type: wire.Welcome, Version: wire.Version, Conversation: "terminal", Attach: true})
	p.expectFile()
	m := p.expect(wire.Message)
	p.write(wire.Frame{Type: wire.Message, ID: "1", ReplyTo: m.ID, Text: "a cat", Attachments: []contract.Attachment{cat}})
	p.expect(wire.Shown)
	f := p.expect(wire.Fetch)
	p.write(wire.Frame{Type: wire.File, ID: f.ID, Attachments: []contract.Attachment{cat}, Data: []byte("a")})
	_ = p.conn.Close() // it asks again
	p = s.accept()
	p.write(wire.Frame{Type: wire.Welcome, Version: wire.Version, Conversation: "terminal", Attach: true})
	p.serveFile("a cat")
	p.expectFile()
	p.answer(p.expect(wire.Message), "the same")
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	want := "a cat\n[image 3f2a9c: ../cat.jpg] 5 B · /save 3f2a9c\n" + dir + "cat.jpg\nthe same\n"
	if out.String() != want {
		t.Errorf("wrote %q, want %q", out.String(), want)
	}
}

func TestFilterSendsNothingWithoutItsFile(t *testing.T) {
	t.Parallel()
	s := newStub(t)
	result := make(chan error, 1)
	go func() {
		result <- filter(t.Context(), Options{Socket: s.path, Out: &strings.Builder{}, Err: &strings.Builder{},
			ConnectTimeout: patience, AnswerTimeout: patience, In: strings.NewReader("/attach /no/file\nwhat is this?\n")})
	}()
	p := s.attach()
	if err := <-result; err == nil || !strings.Contains(err.Error(), "there is no file /no/file") {
		t.Errorf("got %v", err)
	}
	if f, err := p.conn.Read(); err == nil {
		t.Errorf("sent %+v", f)
	}
}
