package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// python is where Debian has it: a sandbox lets nothing run from a home.
const python = "/usr/bin/python3"

// pythonChannel drops in a channel that is written in Python against the documents.
func (w *world) pythonChannel(dedupe string) {
	w.t.Helper()
	const dir = "testdata/python/"
	manifest, err := os.ReadFile(dir + "manifest.yaml")
	if err != nil {
		w.t.Fatal(err)
	}
	w.dropIn("python_channel", "", strings.Replace(string(manifest), "DEDUPE", dedupe, 1), "in")
	to := w.file("extensions", "python_channel")
	copyFile(w, dir+"channel.py", filepath.Join(to, "channel.py"))
	const proto = "../../../contract/proto"
	files, err := filepath.Glob(proto + "/switchboard/*/v1/*.proto")
	if err != nil {
		w.t.Fatal(err)
	}
	if out, err := exec.CommandContext(w.t.Context(), "protoc",
		append([]string{"-I", proto, "--python_out", to}, files...)...).CombinedOutput(); err != nil {
		w.t.Fatalf("protoc: %v: %s", err, out)
	}
}

func needPython(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("protoc"); err != nil {
		t.Skip("protoc is missing: apt-get install protobuf-compiler")
	}
	if out, err := exec.CommandContext(t.Context(), python, "-c",
		"import grpc, google.protobuf").CombinedOutput(); err != nil {
		t.Skipf("Python's gRPC is missing (apt-get install python3-grpcio python3-protobuf): %s", out)
	}
}

// sentLine is a line that the channel has shown.
type sentLine struct {
	ID, Text, Unmarked string
	Repeat             bool
}

// TestAChannelInAnotherLanguageShowsTheMark kills the channel, and then the kernel,
// between sending and acknowledging, sets the clock forward, and compares what people
// see.
func TestAChannelInAnotherLanguageShowsTheMark(t *testing.T) {
	if raceDetector {
		t.Skip("what it builds has no race detector")
	}
	t.Parallel()
	needPython(t)
	if err := buildShifted(); err != nil {
		t.Fatal(err)
	}
	const mark = "(possibly sent before) "
	for dedupe, soon := range map[string]string{"false": mark, "5m": ""} { // the mark within the time
		t.Run("dedupe "+dedupe, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.program = "shifted"
			w.env[shiftVariable] = w.file("clock")
			w.setClock(0)
			w.config(`channels: {python_channel: {allow_from: [me]}}`)
			w.pythonChannel(dedupe)
			w.probe("sender", "bus", "permissions: {publish: [system.user.notify]}")
			w.start()
			c := w.control()
			w.state(c, "python_channel", "active")
			hold := func(on bool) {
				var err error
				if path := w.place("python_channel", "hold"); on {
					err = os.WriteFile(path, nil, 0o600)
				} else {
					err = os.Remove(path)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			shown := func(n int) (line sentLine) {
				if err := json.Unmarshal([]byte(w.line(n, "python_channel", "out")), &line); err != nil {
					t.Fatal(err)
				}
				return line
			}
			notify := func(text string) {
				w.request("sender", "in",
					`{"topic": "system.user.notify", "payload": {"text": "`+text+`", "channel_id": "python_channel"}}`)
			}
			want := func(line, first sentLine, text, mark string) {
				t.Helper()
				expected := sentLine{ID: first.ID, Text: mark + text, Repeat: first.ID != line.ID || first != line}
				if mark != "" {
					expected.Unmarked = text
				}
				if line != expected {
					t.Errorf("it shows %+v, want %+v", line, expected)
				}
			}

			hold(true)
			notify("dinner")
			first := shown(1)
			want(first, first, "dinner", "")
			pid, err := strconv.Atoi(w.text("data", "python_channel", "pid"))
			if err != nil {
				t.Fatal(err)
			}
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			hold(false)
			want(shown(2), first, "dinner", soon)
			w.settled()

			hold(true)
			notify("supper")
			second := shown(3)
			w.crash()
			w.setClock(6 * time.Minute)
			hold(false)
			w.start()
			want(shown(4), second, "supper", mark)
			w.settled()
			if n := len(w.lines("python_channel", "out")); n != 4 {
				t.Errorf("%d messages were shown", n)
			}
		})
	}
}

// TestACommandInAnotherLanguageIsACall has a person write to the channel.
func TestACommandInAnotherLanguageIsACall(t *testing.T) {
	t.Parallel()
	needPython(t)
	w := newWorld(t)
	w.config("channels: {python_channel: {allow_from: [me]}}\nagents: {default: echo}")
	w.pythonChannel("5m")
	w.start()
	w.state(w.control(), "python_channel", "active")
	for i, tt := range [][2]string{
		{"/jot call mum due_seconds=12", "Noted: call mum (12)"},
		{"/jot", "Usage: /jot TEXT [due_seconds=NUMBER]"},
		{"/jot x due_seconds=0", "Due_seconds: got 0, want at least 1. Usage: /jot TEXT"},
		{"/jot x due_secnods=1", "Unknown option 'due_secnods'."},
	} {
		w.request("python_channel", "in", tt[0])
		if got := w.line(i+1, "python_channel", "out"); !strings.Contains(got, tt[1]) {
			t.Errorf("%s is answered with %s, want %s", tt[0], got, tt[1])
		}
	}
	w.request("python_channel", "in", "hello")
	if got := w.line(5, "python_channel", "out"); !strings.Contains(got, "hello") {
		t.Errorf("the answer is %s", got)
	}
}
