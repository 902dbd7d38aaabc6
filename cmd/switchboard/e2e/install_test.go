package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// source is a directory with a version of the probe, to install from.
func (w *world) source(id, mode, version, more string) string {
	w.t.Helper()
	dir := w.file("source", id)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		w.t.Fatal(err)
	}
	copyFile(w, binary("probe"), filepath.Join(dir, "probe"))
	manifest := fmt.Sprintf("api: 1\nid: %s\nname: %s\nversion: %s\nrun: {command: ./probe, args: [%s, %s], start_timeout: %s}\n%s\n",
		id, strings.ToUpper(id), version, id, mode, patience, more)
	if err := os.WriteFile(filepath.Join(dir, "manifest.yaml"), []byte(manifest), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return dir
}

// TestUpdateUnderTrafficLosesNothing updates a channel several times while messages are
// sent through it: with another version, with the same version and other files, and with a
// kill of the command that updates.
func TestUpdateUnderTrafficLosesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.probe("sender", "bus", "permissions: {publish: [system.user.notify]}")
	w.start()
	const channel = "provides: {channel: {formats: [text]}}"
	contains(t, "the installation", w.must("extensions", "install", w.source("letterbox", "channel", "1.0.0", channel)),
		"letterbox 1.0.0 is installed and active")
	c := w.control()
	pids := map[int64]bool{w.extension(c, "letterbox").Pid: true}
	const n, updates = 240, 4
	sent := 0
	send := func() {
		for range n / updates {
			w.request("sender", "in",
				fmt.Sprintf(`{"topic": "system.user.notify", "payload": {"text": "<%d>", "channel_id": "letterbox"}}`, sent))
			sent++
		}
	}
	for update := range updates {
		send()
		switch update {
		case 0, 1:
			version := fmt.Sprintf("1.%d.0", update+1)
			w.source("letterbox", "channel", version, channel)
			contains(t, "the update", w.must("extensions", "update", "letterbox"),
				"→ "+version, "letterbox "+version+" is installed and active")
		case 2: // the same manifest and program; only the record tells the versions apart
			if err := os.WriteFile(w.file("source", "letterbox", "words.txt"), []byte("new"), 0o600); err != nil {
				t.Fatal(err)
			}
			contains(t, "the update", w.must("extensions", "update"), "version 1.2.0, with other files", "active")
		case 3:
			w.source("letterbox", "channel", "2.0.0", channel)
			cmd := w.command("extensions", "update", "letterbox")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Process.Kill() // whenever: the update is done again
			_ = cmd.Wait()
			contains(t, "the update", w.must("extensions", "update", "letterbox"), "2.0.0")
			w.eventually("the new version", func() bool {
				e := w.extension(c, "letterbox")
				return e.Version == "2.0.0" && e.State == "active"
			})
		}
		if update < 3 {
			pids[w.extension(c, "letterbox").Pid] = true
		}
	}
	if len(pids) != updates {
		t.Errorf("%d processes served; each update should have begun another", len(pids))
	}
	w.eventually("all notices", func() bool { return w.count("system.user.notify") == n })
	w.settled()
	lines := w.lines("letterbox", "out")
	for i := range n {
		text := fmt.Sprintf("<%d>", i)
		unmarked, marked := 0, 0
		for _, line := range lines {
			switch {
			case line == text:
				unmarked++
			case strings.HasSuffix(line, text):
				marked++ // a repetition that says so
			}
		}
		if unmarked > 1 || unmarked+marked == 0 {
			t.Errorf("%s was shown %d times, and %d times with a mark", text, unmarked, marked)
		}
	}
	if dead := w.dead(); len(dead) != 0 {
		t.Errorf("dead letters: %q", dead)
	}
	left, err := os.ReadDir(w.file("extensions"))
	if err != nil || len(left) != 2 {
		t.Errorf("the directory of extensions has %v, %v", left, err)
	}
}

// TestInterruptedInstallLeavesNothing interrupts an installation while a server hangs, and
// lets another one give the server up.
func TestInterruptedInstallLeavesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	asked, hang := make(chan struct{}, 2), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
		<-hang
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(hang) })
	cmd := w.command("extensions", "install", server.URL+"/jotter.tar.gz")
	var out buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-asked
	_, complaints, code := w.cli("extensions", "install", server.URL+"/jotter.tar.gz")
	if contains(t, "a second installation", complaints, "another installation is running on this home"); code != 1 {
		t.Errorf("exit status %d", code)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the interrupted installation succeeded")
	}
	contains(t, "the output", out.String(), "Interrupted: nothing was changed.")
	_, complaints, code = w.cli("extensions", "install", server.URL+"/jotter.tar.gz", "--timeout", "100ms")
	if contains(t, "the error", complaints, "not finished after 100ms"); code != 1 {
		t.Errorf("exit status %d", code)
	}
	if left, err := os.ReadDir(w.file("extensions")); err != nil || len(left) != 0 {
		t.Errorf("the directory of extensions has %v, %v", left, err)
	}
}

// TestWhatIsNotAllowedDoesNotRun installs an extension that asks for permission, and updates
// one to a version that asks for more, on a running kernel.
func TestWhatIsNotAllowedDoesNotRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	p := w.attach()
	c := w.control()
	const tools = "provides: {tools: true}"
	dir := w.source("lab", "tools", "1.0.0", tools)
	contains(t, "the installation", w.must("extensions", "install", dir),
		"- give tools to agents", "It doesn't run until you allow it: switchboard extensions allow lab")
	w.state(c, "lab", "not_allowed")
	contains(t, "the question", p.hearsLike("lab"), "give tools to agents")
	if w.text("data", "lab", "env") != "" {
		t.Error("the extension ran before it was allowed")
	}
	contains(t, "the installation", w.must("extensions", "install", dir, "--allow"), "lab 1.0.0 is installed and active")
	w.state(c, "lab", "active")
	installed := func() os.FileInfo {
		t.Helper()
		info, err := os.Stat(w.file("extensions", "lab"))
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	before := installed()

	const more = tools + "\npermissions: {sessions: true}"
	w.source("lab", "tools", "2.0.0", more)
	out, complaints, code := w.cli("extensions", "update", "lab")
	contains(t, "the update", out, "lab: version 1.0.0 → 2.0.0", "- read all conversations")
	if contains(t, "the refusal", complaints, "asks for more than is allowed, so the installed version stays"); code != 1 {
		t.Errorf("exit status %d", code)
	}
	if e := w.state(c, "lab", "active"); e.Version != "1.0.0" || !os.SameFile(before, installed()) {
		t.Errorf("after the refused update: %+v", e)
	}
	contains(t, "the update", w.must("extensions", "update", "lab", "--allow"), "lab 2.0.0 is installed and active")
	contains(t, "the extension", w.must("extensions", "show", "lab"), "Allowed by ", "- read all conversations")

	w.source("lab", "tools", "3.0.0", tools) // less isn't asked about
	contains(t, "the update", w.must("extensions", "update", "lab"), "It no longer asks to:", "lab 3.0.0 is installed and active")
	w.source("lab", "tools", "4.0.0", more) // and more than the last version is
	if _, _, code := w.cli("extensions", "update", "lab"); code != 1 {
		t.Errorf("exit status %d", code)
	}
	w.settled()
	for _, text := range p.texts() {
		if strings.Contains(text, "read all conversations") {
			t.Errorf("what was allowed is asked about in the chat: %s", text)
		}
	}
	w.must("extensions", "remove", "lab", "--yes")
	contains(t, "the installation", w.must("extensions", "install", dir, "--yes"), "It doesn't run until you allow it")
}
