package e2e

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

// People of the tests, as Telegram numbers them.
const (
	anna  = 1001 // the owner
	boris = 1002 // admitted as well
	clara = 1003 // a stranger
	group = -2001
)

// openaiKey is a key that must be seen nowhere.
const openaiKey = "sk-canary-5f1d0b7c9e"

// world is one home with what is around it.
type world struct {
	t        *testing.T
	home     string
	env      map[string]string
	telegram *telegramtest.Server // nil: there is no token
	model    *openaitest.Server   // nil: there is no key
	kernel   *kernel              // the one that was started last
	started  time.Time
	polls    int // of bots, before it was started
	fifos    map[string]*os.File
	full     bool     // kernels are started on a disk that is nearly full
	files    int      // that each process may have open; 0: as it comes
	disk     *disk    // that the home is on; nil: the machine's
	program  string   // another build; empty: the usual one
	runs     []string // more arguments of run
}

// option adds something to a new world.
type option func(*world)

// withTelegram adds Telegram, where Anna and Boris are admitted by name.
func withTelegram(opts ...telegramtest.Option) option {
	return func(w *world) {
		strangers(opts...)(w)
		w.config(fmt.Sprintf(`channels: {telegram_channel: {allow_from: ["%d", "%d"]}}`, anna, boris))
	}
}

// strangers adds Telegram without approved people.
func strangers(opts ...telegramtest.Option) option {
	return func(w *world) {
		w.telegram = telegramtest.Start(w.t, opts...)
		w.env["TELEGRAM_BOT_TOKEN"], w.env["TELEGRAM_API_URL"] = w.telegram.Token(), w.telegram.URL()
		for _, id := range []int64{anna, boris, clara} {
			w.telegram.AddChat(telegramtest.Chat{ID: id, Type: telegramtest.Private})
		}
	}
}

// withModel adds a server for a model.
func withModel(w *world) {
	w.model = openaitest.New(w.t)
	w.model.RequireKey(openaiKey)
	w.env["OPENAI_API_KEY"], w.env["OPENAI_BASE_URL"], w.env["OPENAI_MODEL"] = openaiKey, w.model.BaseURL(), "test-model"
}

// grouped keeps the channels and the rest of the built-ins in two processes, so
// that one of them can be killed and the other goes on.
func grouped(w *world) { w.write(w.text("config.yaml")+"\nprocesses: grouped\n", 0o600, "config.yaml") }

// newWorld makes a home. Nothing runs in it yet.
func newWorld(t *testing.T, opts ...option) *world {
	t.Helper()
	if err := dependOnSources(); err != nil {
		t.Fatal(err)
	}
	home, err := os.MkdirTemp("/tmp", "sb") // short: the paths of sockets are
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, home: home, fifos: map[string]*os.File{}, env: map[string]string{
		"PATH": os.Getenv("PATH"), "HOME": home, "SWITCHBOARD_HOME": home, "TZ": "Europe/Berlin",
	}}
	t.Cleanup(func() {
		w.trouble()
		if t.Failed() {
			w.report()
		}
		_ = os.Chmod(home, 0o700)
		_ = os.RemoveAll(home)
	})
	for _, o := range opts {
		o(w)
	}
	if w.model != nil {
		w.config(w.text("config.yaml"))
	}
	return w
}

// trouble fails the test if a process told of something that must never happen.
func (w *world) trouble() {
	files, _ := filepath.Glob(filepath.Join(w.home, "logs", "*.log"))
	for _, name := range append(files, "") {
		text, _ := os.ReadFile(name)
		if name == "" && w.kernel != nil {
			text = []byte(w.kernel.output.String())
		}
		for _, sign := range []string{"DATA RACE", "panic:", "panicked", "fatal error:", "goroutine 1 ["} {
			if bytes.Contains(text, []byte(sign)) {
				w.t.Errorf("%q stands in what %s wrote:\n%s", sign,
					cmp.Or(strings.TrimSuffix(filepath.Base(name), "."), "the kernel"), text)
				break
			}
		}
	}
}

// report shows what the kernel and its extensions wrote.
func (w *world) report() {
	files, _ := filepath.Glob(filepath.Join(w.home, "logs", "*.log"))
	for _, name := range files {
		text, _ := os.ReadFile(name)
		if len(text) > 6000 {
			text = append([]byte("..."), text[len(text)-6000:]...)
		}
		w.t.Logf("%s:\n%s", filepath.Base(name), text)
	}
	if _, err := os.Stat(w.file("switchboard.db")); err == nil {
		w.t.Logf("under way: %q", w.pending())
	}
	if w.kernel != nil {
		w.t.Logf("the kernel wrote:\n%s", w.kernel.output.String())
	}
}

// file is the path of a file of the home.
func (w *world) file(parts ...string) string {
	return filepath.Join(append([]string{w.home}, parts...)...)
}

// write replaces a file of the home as an editor does: at once.
func (w *world) write(text string, perm os.FileMode, parts ...string) {
	w.t.Helper()
	path := w.file(parts...)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path+"~", []byte(text), perm); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Rename(path+"~", path); err != nil {
		w.t.Fatal(err)
	}
}

// config replaces the configuration. A model that a test holds back is waited for.
func (w *world) config(text string) {
	w.t.Helper()
	if w.model != nil {
		text = patiently(w.t, text)
	}
	w.write(text, 0o600, "config.yaml")
}

// patiently is a configuration that leaves a model as much time as a test has,
// unless it says otherwise.
func patiently(t *testing.T, text string) string {
	t.Helper()
	all := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &all); err != nil {
		t.Fatalf("reading the configuration %q: %v", text, err)
	}
	in := all
	for _, key := range []string{"extensions", "openai", "config"} {
		below, _ := in[key].(map[string]any)
		if below == nil {
			below = map[string]any{}
		}
		in[key], in = below, below
	}
	if in["idle_timeout"] == nil {
		in["idle_timeout"] = patience.String()
	}
	out, err := yaml.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func (w *world) environ() []string {
	var env []string
	for name, value := range w.env {
		env = append(env, name+"="+value)
	}
	return env
}

// ctx ends with the test's patience.
func (w *world) ctx() context.Context {
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	w.t.Cleanup(cancel)
	return ctx
}

// waitFor looks again and again whether something has happened.
func (w *world) waitFor(done func() bool) bool {
	for began := time.Now(); ; {
		look := time.Now()
		if done() {
			return true
		}
		waited := time.Since(began)
		if waited > patience {
			return false
		}
		// What takes long to look at, or to happen, is looked at less often.
		time.Sleep(max(10*time.Millisecond, time.Since(look), min(waited/20, 100*time.Millisecond)))
	}
}

func (w *world) eventually(what string, done func() bool) {
	w.t.Helper()
	if !w.waitFor(done) {
		w.t.Fatalf("in %s there was not: %s", patience, what)
	}
}

// kernel is one running `switchboard run`.
type kernel struct {
	cmd    *exec.Cmd
	output *buffer
	ended  chan struct{}
}

func (k *kernel) pid() int { return k.cmd.Process.Pid }

// command is the program with arguments, not started yet.
func (w *world) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(w.t.Context(), binary(cmp.Or(w.program, "switchboard")), args...)
	cmd.Env = w.environ()
	return cmd
}

// cli runs a command to its end.
func (w *world) cli(args ...string) (stdout, stderr string, code int) {
	w.t.Helper()
	cmd := w.command(args...)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	err := cmd.Run()
	if cmd.ProcessState == nil {
		w.t.Fatalf("switchboard %s: %v", strings.Join(args, " "), err)
	}
	return out.String(), complaints.String(), cmd.ProcessState.ExitCode()
}

// must runs a command that has to work.
func (w *world) must(args ...string) string {
	w.t.Helper()
	out, complaints, code := w.cli(args...)
	if code != 0 {
		w.t.Fatalf("switchboard %s: exit status %d: %s%s", strings.Join(args, " "), code, complaints, out)
	}
	return out
}

// list decodes what a command prints with --json.
func list[T any](w *world, args ...string) T {
	w.t.Helper()
	var v T
	out := w.must(append(args, "--json")...)
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		w.t.Fatalf("switchboard %s --json: %v in %s", strings.Join(args, " "), err, out)
	}
	return v
}

// start starts a kernel and returns when it takes terminals.
func (w *world) start() {
	w.t.Helper()
	k := w.launch()
	w.eventually("a socket for terminals", func() bool {
		select {
		case <-k.ended:
			w.t.Fatalf("the kernel ended: %s", k.output)
		default:
		}
		c, err := w.dial()
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
}

// launch starts a kernel.
func (w *world) launch() *kernel {
	w.t.Helper()
	cmd := w.command(append([]string{"run"}, w.runs...)...)
	if w.full {
		cmd = limited(cmd, w.storeSize())
	}
	if w.files > 0 {
		cmd = few(cmd, w.files)
	}
	if w.disk != nil {
		cmd = w.disk.on(cmd)
	}
	k := &kernel{cmd: cmd, output: &buffer{}, ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = k.output, k.output
	cmd.WaitDelay = time.Second
	if w.telegram != nil {
		w.polls = w.telegram.Calls("getUpdates")
	}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.kernel, w.started = k, time.Now()
	go func() {
		_ = cmd.Wait()
		close(k.ended)
	}()
	w.t.Cleanup(func() { w.kill(k) })
	return k
}

// kill ends a kernel with -9 and checks that nothing of it is left.
func (w *world) kill(k *kernel) {
	w.t.Helper()
	select {
	case <-k.ended:
		return
	default:
	}
	below := descendants(w.t, k.pid())
	_ = k.cmd.Process.Kill()
	<-k.ended
	w.gone(below)
}

// crash kills the running kernel with -9; restart starts the next one, too.
func (w *world) crash() { w.t.Helper(); w.kill(w.kernel) }

func (w *world) restart() {
	w.t.Helper()
	w.crash()
	w.start()
}

// stop ends the running kernel as Ctrl-C does.
func (w *world) stop() {
	w.t.Helper()
	below := descendants(w.t, w.kernel.pid())
	_ = w.kernel.cmd.Process.Signal(syscall.SIGINT)
	select {
	case <-w.kernel.ended:
	case <-time.After(patience):
		w.t.Error("the kernel does not end when asked to")
		w.crash()
	}
	w.gone(below)
}

// telegramReady waits until the bot of the running kernel polls and the kernel
// knows it, or has killed itself, as some tests want.
func (w *world) telegramReady() {
	w.t.Helper()
	ctx := w.ctx()
	if err := w.telegram.WaitCalls(ctx, "getUpdates", w.polls+1); err != nil {
		w.t.Fatal(err)
	}
	w.eventually("Telegram to be ready", func() bool {
		select {
		case <-w.kernel.ended:
			return true
		default:
		}
		c, err := admin.Dial(ctx, w.file("run", contract.ControlSocket), w.file(contract.ControlToken))
		if err != nil {
			return false
		}
		defer c.Close()
		known, err := c.Directory(ctx, &adminv1.DirectoryRequest{})
		return err == nil && slices.ContainsFunc(admin.Channels(known), func(ch admin.Channel) bool {
			return ch.ID == "telegram_channel" && (ch.Status == "ready" || ch.Status == "degraded")
		})
	})
}

// told waits for the nth message to a chat.
func (w *world) told(chat int64, n int) telegramtest.Message {
	w.t.Helper()
	m, err := w.telegram.WaitMessage(w.ctx(), chat, n)
	if err != nil {
		w.t.Fatal(err)
	}
	return m
}

// texts are what the bot wrote in a chat so far.
func (w *world) texts(chat int64) []string {
	var out []string
	for _, m := range w.telegram.Messages(chat) {
		out = append(out, m.Text)
	}
	return out
}

// buffer is a bytes.Buffer for several goroutines.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

var _ io.Writer = (*buffer)(nil)

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
