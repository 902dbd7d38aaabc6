package e2e

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
)

// ownSecret is a secret of a dropped-in extension that must be seen nowhere.
const ownSecret = "own-canary-77aa31e0"

// Everything in the home belongs to the user alone, though the umask hides
// nothing: each place sets the mode of what it makes.
func TestFilesAndSocketsAreForTheUserAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram(), withModel)
	w.model.Handle(func(openaitest.Request) openaitest.Answer { return openaitest.Say("Hello.") })
	w.write("OWN_SECRET="+ownSecret+"\n", 0o600, "secrets.env")
	w.probe("box", "channel", "provides: {channel: {formats: [text]}}")
	w.start()
	w.telegramReady()
	w.state(w.control(), "box", "active")
	w.attach().ask("hello")
	w.must("backup", "create")
	seen := map[string]bool{}
	err := filepath.WalkDir(w.home, func(path string, d fs.DirEntry, err error) error {
		var info fs.FileInfo
		if err == nil {
			info, err = d.Info()
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it is gone already
		}
		if err != nil {
			return err
		}
		seen[strings.TrimPrefix(path, w.home+"/")] = true
		if info.Mode().Perm()&0o077 != 0 && info.Mode()&fs.ModeSymlink == 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"switchboard.db", "run/control.sock", "run/kernel.sock", "run/chat.sock",
		"control.token", "data/cli_channel/terminal.token", "logs/kernel.log", "run/x"} {
		if !seen[path] {
			t.Errorf("there is no %s", path)
		}
	}
}

// The kernel and its extensions can be reached by sockets of the file system
// only.
func TestNobodyListensOnTheNetwork(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("sockets are looked up in /proc")
	}
	w := newWorld(t, withTelegram(), withModel)
	w.start()
	w.telegramReady()
	listening := map[string]bool{}
	for _, table := range []string{"tcp", "tcp6"} {
		for _, line := range w.linesOf("/proc/net/" + table) {
			if f := strings.Fields(line); len(f) > 9 && f[3] == "0A" {
				listening["socket:["+f[9]+"]"] = true
			}
		}
	}
	for _, p := range append(descendants(t, w.kernel.pid()), process{pid: w.kernel.pid(), command: "the kernel"}) {
		fds, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", p.pid))
		for _, fd := range fds {
			if to, _ := os.Readlink(fd); listening[to] {
				t.Errorf("%s listens on the network", p)
			}
		}
	}
}

// A secret goes to the extension that declares it, and nowhere else: not into
// files, logs, events, traces, what commands print, or the environment and the
// arguments of any process.
func TestSecretsAreWrittenNowhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram(), withModel)
	w.model.Handle(func(openaitest.Request) openaitest.Answer { return openaitest.Say("Hello.") })
	token := w.telegram.Token()
	secrets := fmt.Sprintf("TELEGRAM_BOT_TOKEN=%s\nOPENAI_API_KEY=%s\nOWN_SECRET=%s\n", token, openaiKey, ownSecret)
	delete(w.env, "TELEGRAM_BOT_TOKEN")
	delete(w.env, "OPENAI_API_KEY")
	w.write(secrets, 0o600, "secrets.env")
	w.probe("holder", "bus", "secrets: [{name: OWN_SECRET}]\npermissions: {publish: [system.user.notify]}")
	w.probe("loop", "crash", quickly+"\nsecrets: [{name: OWN_SECRET}]")
	w.probe("blurt", "blurt", quickly+"\nsecrets: [{name: OWN_SECRET}]")
	w.start()
	w.telegramReady()
	w.telegram.Say(anna, "hello")
	w.told(anna, 1)
	// Something to write about: failures on both sides, and a request too many.
	w.telegram.FailStatus("sendMessage", 1, 500)
	w.telegram.FailStatus("getUpdates", 1, 502)
	w.telegram.Say(anna, "hello again")
	w.told(anna, 2)
	w.model.RequireKey("another key")
	w.telegram.Say(anna, "hello with a key that is refused")
	w.told(anna, 3)
	w.state(w.control(), "loop", "failed")
	w.state(w.control(), "blurt", "failed")
	if got := w.extension(w.control(), "blurt").LastError; !strings.Contains(got,
		"Get https://example.org/bot[secret]/getMe") {
		t.Errorf("it ended with %q", got)
	}
	if got := w.log("blurt"); !strings.Contains(got, "calling failed") || !strings.Contains(got, "plainly: ") {
		t.Errorf("it wrote %q", got)
	}

	canaries := []string{token, strings.SplitN(token, ":", 2)[1], openaiKey, ownSecret}
	clean := func(where string, text []byte) {
		t.Helper()
		for _, c := range canaries {
			if bytes.Contains(text, []byte(c)) {
				t.Errorf("a secret stands in %s", where)
			}
		}
	}
	commands := [][]string{
		{"status", "--json"}, {"doctor", "--json"}, {"extensions", "list", "--json"}, {"channels", "list", "--json"},
		{"events", "tail", "-n", "200", "--json"},
		{"events", "dead", "--json"}, {"sessions", "list", "--json"}, {"logs"}, {"logs", "openai"}, {"usage", "--json"},
	}
	for _, id := range w.query(`SELECT seq FROM event WHERE topic = 'user.message'`) {
		commands = append(commands, []string{"trace", "e" + id}, []string{"events", "show", "e" + id})
	}
	for _, args := range commands {
		out, complaints, code := w.cli(args...)
		if code != 0 && args[0] != "doctor" {
			t.Errorf("switchboard %s: %s", strings.Join(args, " "), complaints)
		}
		clean("what `switchboard "+strings.Join(args, " ")+"` prints", []byte(out+complaints))
	}
	if runtime.GOOS == "linux" {
		for _, p := range append(descendants(t, w.kernel.pid()), process{pid: w.kernel.pid(), command: "the kernel"}) {
			for _, file := range []string{"environ", "cmdline"} {
				text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", p.pid, file))
				clean(fmt.Sprintf("the %s of %s", file, p), text)
			}
		}
	}
	w.must("backup", "create")
	// Killed, so that the store is as it is at any moment: pages and the log of
	// what was written last.
	w.crash()
	clean("what the kernel wrote", []byte(w.kernel.output.String()))
	files, seen := 0, []string{}
	err := filepath.WalkDir(w.home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || path == w.file("secrets.env") {
			return err
		}
		text, err := os.ReadFile(path)
		if err == nil && strings.HasSuffix(path, ".tar.gz") {
			text = unpacked(t, text)
		}
		files++
		seen = append(seen, filepath.Base(path))
		clean(path, text)
		return err
	})
	for _, name := range []string{"switchboard.db", "switchboard.db-wal", "kernel.log", "blurt.log"} {
		if !slices.Contains(seen, name) {
			t.Errorf("there is no %s among %v", name, seen)
		}
	}
	if !slices.ContainsFunc(seen, func(name string) bool { return strings.HasSuffix(name, ".tar.gz") }) {
		t.Errorf("there is no backup among %v", seen)
	}
	if err != nil || files < 8 {
		t.Errorf("looked at %d files: %v", files, err)
	}
}

// unpacked is what is in an archive, one after another.
func unpacked(t *testing.T, packed []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return all
}
