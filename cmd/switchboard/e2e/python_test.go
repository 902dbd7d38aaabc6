package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
)

// withSDK drops in an extension in Python: the files of a directory, the launcher that
// `switchboard extensions new` makes, and the SDK.
func (w *world) withSDK(id, dir string) {
	w.t.Helper()
	made := filepath.Join(w.t.TempDir(), id)
	run := exec.CommandContext(w.t.Context(), binary("switchboard"), "extensions", "new", id, "--lang", "python")
	run.Dir, run.Env = filepath.Dir(made), w.environ()
	if out, err := run.CombinedOutput(); err != nil {
		w.t.Fatalf("extensions new: %v: %s", err, out)
	}
	if err := os.RemoveAll(filepath.Join(made, "main.py")); err != nil {
		w.t.Fatal(err)
	}
	copyFile(w, filepath.Join(dir, "main.py"), filepath.Join(made, "main.py"))
	manifest, err := os.ReadFile(filepath.Join(dir, "manifest.yaml"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.dropIn(id, "", string(manifest))
	to := w.file("extensions", id)
	if err := os.CopyFS(to+"/vendor", os.DirFS(made+"/vendor")); err != nil {
		w.t.Fatal(err)
	}
	copyFile(w, filepath.Join(made, "main.py"), filepath.Join(to, "main.py"))
	copyFile(w, filepath.Join(made, id), filepath.Join(to, id))
}

// TestAnExtensionInPythonIsNewAndVerified runs the commands of the README of a new extension.
func TestAnExtensionInPythonIsNewAndVerified(t *testing.T) {
	t.Parallel()
	needPython(t)
	for _, kind := range []string{"channel", "tool", "agent"} {
		w := newWorld(t)
		dir := t.TempDir()
		for _, command := range [][]string{
			{binary("switchboard"), "extensions", "new", "first", "--lang", "python", "--" + kind},
			{python, "-B", "-m", "unittest"},
			{binary("switchboard"), "extensions", "verify", "."},
		} {
			run := exec.CommandContext(t.Context(), command[0], command[1:]...)
			run.Dir, run.Env = dir, append(w.environ(), "PYTHONPATH=vendor")
			if out, err := run.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v: %s", strings.Join(command, " "), err, out)
			}
			dir = filepath.Join(strings.TrimSuffix(dir, "/first"), "first")
		}
	}
}

// TestTheChannelInTheReadmeOfPython runs it as it stands there.
func TestTheChannelInTheReadmeOfPython(t *testing.T) {
	t.Parallel()
	needPython(t)
	readme, err := os.ReadFile("../../../sdk/python/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(readme), "```python\n")
	code, _, _ = strings.Cut(code, "```")
	if n := strings.Count(code, "\n"); n > 25 {
		t.Errorf("the channel has %d lines", n)
	}
	dir := t.TempDir()
	manifest, err := os.ReadFile("testdata/pythonsdk/manifest.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"main.py": code, "manifest.yaml": strings.ReplaceAll(string(manifest), "python_sdk", "file_channel"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w := newWorld(t)
	w.config("channels: {file_channel: {allow_from: [me]}}\nagents: {default: echo}")
	w.withSDK("file_channel", dir)
	w.start()
	w.state(w.control(), "file_channel", "active")
	for _, line := range []string{"hello", "once more"} {
		appendTo(w, w.place("file_channel", "inbox"), line+"\n")
		w.eventually("the answer", func() bool { return strings.Contains(w.text("data", "file_channel", "outbox"), line) })
		w.crash()
		w.start()
		w.state(w.control(), "file_channel", "active")
	}
}

// TestAChannelInPythonLosesNothing kills the extension and the kernel in turn, while
// people write and the assistant answers. SWITCHBOARD_PYTHON=1000,20 is how many messages
// and kills there are.
func TestAChannelInPythonLosesNothing(t *testing.T) {
	t.Parallel()
	needPython(t)
	messages, kills := 60, 4
	if given := os.Getenv("SWITCHBOARD_PYTHON"); given != "" {
		if _, err := fmt.Sscanf(given, "%d,%d", &messages, &kills); err != nil {
			t.Fatal(err)
		}
	}
	w := newWorld(t)
	w.config("channels: {python_sdk: {allow_from: [me]}}\nagents: {default: echo, enabled: [echo]}\n" +
		"extensions: {offline: {enabled: false}, memory: {enabled: false}, heartbeat: {enabled: false}}")
	w.dropIn("echo", "", echoAgent)
	w.withSDK("python_sdk", "testdata/pythonsdk")
	w.start()
	w.state(w.control(), "python_sdk", "active")

	var inbox strings.Builder
	for i := range messages {
		fmt.Fprintf(&inbox, "message %d.\n", i)
	}
	began := time.Now()
	appendTo(w, w.place("python_sdk", "inbox"), inbox.String()) // which the extension has open
	shown := func() []string { return w.lines("python_sdk", "outbox") }
	memory := 0
	for i := range kills {
		after := messages * (i + 1) / (kills + 2)
		w.eventually(fmt.Sprintf("%d messages", after), func() bool { return len(shown()) >= after })
		if i%2 == 1 {
			w.crash()
			w.start()
			continue
		}
		pid, err := strconv.Atoi(w.text("data", "python_sdk", "pid"))
		if err == nil {
			memory = max(memory, resident(pid))
			err = syscall.Kill(pid, syscall.SIGKILL)
		}
		if err != nil {
			t.Logf("it has ended already: %v", err) // with the kernel
		}
	}
	times := map[string]int{}
	unmarked := func(line string) (text string, marked bool) {
		var sent sentLine
		if json.Unmarshal([]byte(line), &sent) != nil { // cut by a kill: not sent
			return "", true
		}
		text, marked = strings.CutPrefix(sent.Text, "(possibly sent before) ")
		return text, marked
	}
	w.eventually("all answers", func() bool {
		seen := map[string]bool{}
		for _, line := range shown() {
			text, _ := unmarked(line)
			seen[text] = true
		}
		for i := range messages {
			if !seen[fmt.Sprintf("message %d.", i)] {
				return false
			}
		}
		return true
	})
	took := time.Since(began)
	w.settled()
	repeated := 0
	for _, line := range shown() {
		if text, marked := unmarked(line); marked {
			repeated++
		} else {
			times[text]++
		}
	}
	for text, n := range times {
		if n > 1 {
			t.Errorf("%q was sent %d times without a mark", text, n)
		}
	}
	if pid, err := strconv.Atoi(w.text("data", "python_sdk", "pid")); err == nil {
		memory = max(memory, resident(pid))
	}
	t.Logf("%d messages and %d kills in %s, %d marked; the extension has %d MiB",
		messages, kills, took.Round(time.Millisecond), repeated, memory)
}

// appendTo adds text to a file.
func appendTo(w *world, path, text string) {
	w.t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// resident is the memory of a process in MiB; 0: unknown.
func resident(pid int) int {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(status), "VmRSS:")
	fields := strings.Fields(after)
	if len(fields) == 0 {
		return 0
	}
	kib, _ := strconv.Atoi(fields[0])
	return kib >> 10
}

// TestTheParcelTracker has the assistant track a parcel: the person is told when it moves,
// once, also after a crash, and reminded on the day it arrives.
func TestTheParcelTracker(t *testing.T) {
	t.Parallel()
	needPython(t)
	var status atomic.Value
	status.Store("Left Hamburg")
	arrives := time.Now().AddDate(0, 0, 3).Format(time.DateOnly)
	dhl := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.Header.Get("DHL-API-Key") != "secret" || r.URL.Query().Get("trackingNumber") != "12345" {
			out.WriteHeader(http.StatusUnauthorized)
			return
		}
		_ = json.NewEncoder(out).Encode(map[string]any{"shipments": []any{map[string]any{
			"status": map[string]any{"description": status.Load()}, "estimatedTimeOfDelivery": arrives + "T12:00:00",
		}}})
	}))
	t.Cleanup(dhl.Close)
	w := newWorld(t, withModel)
	w.env["DHL_API_KEY"] = "secret"
	w.config("agents: {orchestrator: {tools: [+parcels/*]}}\n" +
		"extensions: {parcels: {config: {every_seconds: 0.2, api_url: " + strconv.Quote(dhl.URL) + "}}}")
	w.withSDK("parcels", "../../../sdk/examples/parcels")
	tests := exec.CommandContext(t.Context(), python, "-B", "-m", "unittest")
	tests.Dir, tests.Env = "../../../sdk/examples/parcels", append(os.Environ(), "PYTHONPATH="+w.file("extensions", "parcels", "vendor"))
	if out, err := tests.CombinedOutput(); err != nil {
		t.Errorf("the example's own tests: %v\n%s", err, out)
	}
	w.write("api_url: "+dhl.URL, 0o600, "verify.yaml")
	w.must("extensions", "verify", w.file("extensions", "parcels"), "--config", w.file("verify.yaml"), "--secret", "DHL_API_KEY")
	w.start()
	w.state(w.control(), "parcels", "active")
	p := w.attach()
	w.model.Queue(openaitest.CallTool("parcels__track", map[string]any{"number": "12345", "name": "Shoes"}),
		openaitest.Say("I'm tracking it."))
	if got := p.ask("track my shoes, 12345"); got != "I'm tracking it." {
		t.Fatalf("the answer is %q", got)
	}
	if got, want := p.ask("/parcels"), "- Shoes: Left Hamburg, arrives "+arrives+" (12345)"; got != want {
		t.Errorf("the command shows %q, want %q", got, want)
	}
	w.eventually("the reminder", func() bool {
		return strings.Contains(w.must("schedules", "list", "--json"), "Shoes arrives today.")
	})
	status.Store("In delivery")
	p.hearsLike("Shoes: In delivery")
	w.crash()
	w.start()
	w.state(w.control(), "parcels", "active")
	again := w.attach()
	status.Store("Delivered to a neighbor")
	again.hearsLike("Shoes: Delivered to a neighbor")
	w.settled()
	if n := strings.Count(w.must("schedules", "list", "--json"), "Shoes arrives today."); n != 1 {
		t.Errorf("there are %d reminders", n)
	}
	for _, text := range again.texts() {
		if strings.Contains(text, "In delivery") && !strings.Contains(text, "possibly sent before") {
			t.Errorf("it is said again: %q", text)
		}
	}
}
