package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// needNode skips unless $SWITCHBOARD_NODE is a directory whose node_modules has the SDK for
// Node and what it needs; .ci/run makes it.
func needNode(t *testing.T) (node, modules string) {
	t.Helper()
	dir := os.Getenv("SWITCHBOARD_NODE")
	if dir == "" {
		t.Skip("SWITCHBOARD_NODE is not set to a directory in which the SDK for Node is installed")
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("Node is not installed")
	}
	return node, filepath.Join(dir, "node_modules")
}

// nodeExtension drops an extension in that consists of files, with its packages.
func (w *world) nodeExtension(id, manifest string, files map[string]string, fifos ...string) {
	w.t.Helper()
	_, modules := needNode(w.t)
	staging := w.file("staging", id)
	for name, text := range files {
		path := filepath.Join(staging, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			w.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
	if out, err := exec.CommandContext(w.t.Context(), "cp", "-R", modules, staging).CombinedOutput(); err != nil {
		w.t.Fatalf("copy the packages: %v: %s", err, out)
	}
	w.dropIn(id, "", manifest, fifos...)
}

const nodeFileChannel = `api: 1
id: file_channel
name: File
version: 1.0.0
description: Appends messages to box/out and takes the lines of the fifo box/in as a person's.
run: {command: node, args: [main.mjs, box], start_timeout: 60s}
provides: {channel: {formats: [text]}}
permissions: {publish: [user.message], files: [{path: box, write: true}]}
restart: {backoff: 100ms, max: 100}
`

// nodeReadmeChannel is the channel in the README of the SDK.
func nodeReadmeChannel(t *testing.T) string {
	t.Helper()
	readme, err := os.ReadFile("../../../sdk/node/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(readme), "```js\n")
	code, _, _ = strings.Cut(code, "```")
	return code
}

// cpuTime is what a process has used of the processors.
func cpuTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Skip(err)
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')'):]))
	var ticks time.Duration
	for _, field := range fields[12:14] { // user and system, in hundredths of a second
		n, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		ticks += time.Duration(n)
	}
	return ticks * 10 * time.Millisecond
}

// TestRateOfChannelsInGoAndNode sends the same lines through the same channel in both, and
// logs how long that takes and how large the processes are.
func TestRateOfChannelsInGoAndNode(t *testing.T) {
	needNode(t)
	const lines = 1000
	for _, language := range []string{"Go", "Node"} {
		w := newWorld(t)
		w.config("channels: {file_channel: {allow_from: [me]}}\nagents: {default: echo}")
		mark := "filechannel"
		if language == "Go" {
			w.fileChannel()
		} else {
			mark = "main.mjs"
			w.nodeExtension("file_channel", nodeFileChannel, map[string]string{"main.mjs": nodeReadmeChannel(t)}, "box/in")
		}
		w.start()
		w.state(w.control(), "file_channel", "active")
		began := time.Now()
		for i := range lines {
			w.request("file_channel", "box/in", fmt.Sprintf("hello %d", i))
		}
		w.eventually("all answers", func() bool {
			return strings.Count(w.text("extensions", "file_channel", "box", "out"), "hello") >= lines
		})
		took := time.Since(began)
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.extensionProcess(mark).pid))
		if err != nil {
			t.Skip(err)
		}
		_, rss, _ := strings.Cut(string(status), "VmRSS:")
		rss, _, _ = strings.Cut(strings.TrimSpace(rss), "\n")
		t.Logf("%s: %d lines and answers in %s, CPU %s, resident %s", language, lines, took.Round(time.Millisecond),
			cpuTime(t, w.extensionProcess(mark).pid), rss)
		w.stop()
	}
}

// The channel in the README of the SDK works as it stands there, and is short.
func TestTheChannelInTheReadmeOfNode(t *testing.T) {
	t.Parallel()
	needNode(t)
	code := nodeReadmeChannel(t)
	if n := strings.Count(code, "\n"); n > 25 {
		t.Errorf("the channel has %d lines", n)
	}
	w := newWorld(t)
	w.config("channels: {file_channel: {allow_from: [me]}}\nagents: {default: echo}")
	w.nodeExtension("file_channel", nodeFileChannel, map[string]string{"main.mjs": code}, "box/in")
	w.start()
	w.state(w.control(), "file_channel", "active")
	for i := range 20 {
		w.request("file_channel", "box/in", fmt.Sprintf("hello %d", i))
	}
	w.eventually("all answers", func() bool {
		return strings.Count(w.text("extensions", "file_channel", "box", "out"), "hello") == 20
	})
	first := w.extensionProcess("main.mjs")
	w.crash()
	w.gone([]process{first})
	w.start()
	w.request("file_channel", "box/in", "once more")
	w.eventually("an answer after the crash", func() bool {
		return strings.Contains(w.text("extensions", "file_channel", "box", "out"), "once more")
	})
}

// What "extensions new --lang node" makes passes its own test, the check of its types and
// the rules of the protocol, as it is.
func TestNewExtensionsInNode(t *testing.T) {
	t.Parallel()
	_, modules := needNode(t)
	for _, kind := range []string{"channel", "tool", "agent"} {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			run := func(in, program string, args ...string) {
				t.Helper()
				cmd := exec.CommandContext(t.Context(), program, args...)
				cmd.Dir, cmd.Env = in, append(os.Environ(), "SWITCHBOARD_HOME="+filepath.Join(dir, "home"))
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%s %v: %v\n%s", program, args, err, out)
				}
			}
			run(dir, binary("switchboard"), "extensions", "new", "my_"+kind, "--lang", "node", "--"+kind)
			made := filepath.Join(dir, "my_"+kind)
			run(made, "cp", "-R", modules, ".")
			run(made, "node", "--test")
			run(made, "npm", "run", "types")
			run(made, binary("switchboard"), "extensions", "verify", ".")
		})
	}
}
