package e2e

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
)

// console is `switchboard chat` on a pseudo-terminal.
type console struct {
	w        *world
	keyboard *os.File
	screen   *buffer
}

func (w *world) console(env ...string) *console {
	w.t.Helper()
	cmd := w.command("chat")
	cmd.Env = append(append(cmd.Env, "TERM=xterm"), env...)
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: 120})
	if err != nil {
		w.t.Skip("no pseudo-terminal here:", err)
	}
	c := &console{w: w, keyboard: tty, screen: &buffer{}}
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(c.screen, tty)
	}()
	w.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = tty.Close()
		<-read
	})
	c.sees("Switchboard")
	return c
}

func (c *console) types(line string) {
	c.w.t.Helper()
	if _, err := c.keyboard.WriteString(line + "\r"); err != nil {
		c.w.t.Fatal(err)
	}
}

func (c *console) sees(text string) {
	c.w.t.Helper()
	if !c.w.waitFor(func() bool { return strings.Contains(c.screen.String(), text) }) {
		c.w.t.Fatalf("the terminal never showed %q but:\n%s", text, c.screen.String())
	}
}

// A photo is dropped on a terminal and reaches the model; the agent sends it back, the
// terminal shows it, and it is saved.
func TestTerminalSendsAndSavesFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withModel)
	w.config("extensions: {openai: {config: {vision: [test-model]}}}")
	data := photo(t, 400, 300)
	if err := os.WriteFile(w.file("my cat.jpg"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	digits := fmt.Sprintf("%.3x", sha256.Sum256(data))
	w.model.Queue(openaitest.CallTool(sendTool, map[string]any{
		"channel_id": "cli_channel", "text": "here it is", "attachments": []string{digits},
	}), openaitest.Say("done"))
	w.start()
	c := w.console("TERM_PROGRAM=iTerm.app")
	c.types("/attach no.jpg")
	c.sees("there is no file no.jpg")
	c.types("'" + w.file("my cat.jpg") + "' ")
	c.sees("attached: my cat.jpg, ")
	c.types("send it back")
	c.sees("+ my cat.jpg, ")
	c.sees("[image " + digits + ": my cat.jpg]")
	c.sees("\x1b]1337;File=inline=1;")
	c.sees("done")
	request := w.model.Requests()[0]
	if images := request.Images(); len(images) != 1 {
		t.Errorf("the model sees %d images", len(images))
	}
	contains(t, "the request", transcript(request), "send it back\n[image "+digits+": my cat.jpg]")
	for _, name := range []string{"my cat (2).jpg", "my cat (3).jpg"} {
		c.types("/save " + digits + " " + w.home)
		c.sees("saved: " + w.file(name))
		if b, err := os.ReadFile(w.file(name)); err != nil || !bytes.Equal(b, data) {
			t.Errorf("%s has %d bytes, %v", name, len(b), err)
		}
	}
	c.types("/save " + digits + " '" + w.file("my cat.jpg") + "'")
	c.sees("my cat.jpg exists: choose another name")
	c.types("/save 000000")
	c.sees("there is no file 000000 in this conversation")
}

// The kernel is killed while a file arrives: the message is accepted once, with its file.
func TestFileOfATerminalSurvivesAKill(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withModel)
	w.model.Handle(echo)
	w.start()
	data := bytes.Repeat([]byte("a line of a long file\n"), 2_000_000)
	if err := os.WriteFile(w.file("long.txt"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd, output := w.command("chat"), &buffer{}
	cmd.Stdin = strings.NewReader("/attach " + w.file("long.txt") + "\n<one>\n/save " + fmt.Sprintf("%.3x", sha256.Sum256(data)) +
		" " + w.file("saved.txt") + "\n")
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.eventually("a part of the file", func() bool { return w.storedFiles() > 0 })
	w.restart()
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	contains(t, "the output", output.String(), "<one>", w.file("saved.txt"))
	if saved, err := os.ReadFile(w.file("saved.txt")); err != nil || !bytes.Equal(saved, data) {
		t.Errorf("saved %d bytes of %d, %v", len(saved), len(data), err)
	}
	if n := w.count("user.message"); n != 1 {
		t.Errorf("%d messages were accepted, want 1", n)
	}
	if left, _ := filepath.Glob(w.file(".switchboard-*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestTerminalRefusesFilesWithReasons(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.config("files: {file: 1MiB}")
	w.start()
	if err := os.WriteFile(w.file("large"), bytes.Repeat([]byte("x"), 1<<20+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"large":         "is larger than 1.0 MiB (files.file in config.yaml)",
		"run":           "is a folder: name the files in it",
		"no\x1b[2J":     "there is no file " + w.home,
		"run/chat.sock": "isn't an ordinary file",
	} {
		cmd := w.command("chat")
		cmd.Stdin = strings.NewReader("/attach " + w.file(path) + "\nwhat is this?\n")
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) || bytes.Contains(out, []byte("\x1b[2J")) {
			t.Errorf("%s: %v: %q, want %q", path, err, out, want)
		}
	}
	if n := w.count("user.message"); n != 0 {
		t.Errorf("%d messages were accepted", n)
	}
}

// "Remind me of this" with a file, without a language model: the reminder brings the file
// back, also after a kill, and it can be saved.
func TestOfflineReminderBringsTheFileBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	data := photo(t, 40, 30)
	if err := os.WriteFile(w.file("cat.jpg"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	digits := fmt.Sprintf("%.3x", sha256.Sum256(data))
	c := w.console("NO_COLOR=1")
	c.types("/attach " + w.file("cat.jpg"))
	c.sees("attached: cat.jpg, ")
	c.types("remind me of this in 3 seconds")
	c.sees("cat.jpg [r1]")
	w.restart()
	if err := os.Remove(w.file("cat.jpg")); err != nil {
		t.Fatal(err)
	}
	c.sees("⏰ cat.jpg")
	c.sees("[image " + digits + ": cat.jpg]")
	c.sees("1 Done   2 +10 min   3 Tomorrow morning")
	c.types("/save " + digits + " " + w.home)
	c.sees("saved: " + w.file("cat.jpg"))
	if b, err := os.ReadFile(w.file("cat.jpg")); err != nil || !bytes.Equal(b, data) {
		t.Errorf("saved %d bytes, %v", len(b), err)
	}
	c.types("2")
	c.sees("OK, I'll remind you again ")
}
