package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/bench/processes"
	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/home/consent/consenttest"
)

// patience bounds every wait; only a loss takes that long.
const patience = 3 * time.Minute

// home is one home with its servers and its kernel.
type home struct {
	dir      string
	binary   string
	channel  string // where people write
	platform platform
	model    *script
	openai   *openaitest.Server
	extra    []string // environment of the next kernel
	patience time.Duration

	settled []message // messages that were counted
	losses  int       // losses found in them

	mu     sync.Mutex
	kernel *exec.Cmd
	ended  chan struct{}
	out    *os.File
	onSent func(arrived)

	leaving sync.WaitGroup // goroutines that watch for leftover processes
	left    []string
}

const manifests = `api: 1
id: keeper
name: Keeper
version: 1.0.0
agent:
  model: default
  instructions: You keep the shop.
  uses_tools: [core/*, shop/*, scheduler/*]
restart: {backoff: 20ms, max_backoff: 20ms, max: 1000}
---
api: 1
id: shop
name: Shop
version: 1.0.0
run: {command: %q, args: [extension]}
provides: {tools: true, channel: {max_length: 0}}
restart: {backoff: 20ms, max_backoff: 20ms, max: 1000}
`

// homes lists the existing homes, to clean up after an interrupt.
var homes sync.Map

// newHome makes a home whose people write in a channel; config is added to its
// configuration.
func newHome(binary, channel, config string) (*home, error) {
	dir, err := os.MkdirTemp("/tmp", "sbf")
	if err != nil {
		return nil, err
	}
	h := &home{dir: dir, binary: binary, channel: channel, model: newScript(), patience: patience}
	if h.platform, err = platforms[channel](h, h.sent); err != nil {
		return nil, err
	}
	if h.openai, err = openaitest.Start(); err != nil {
		return nil, err
	}
	h.openai.Keep(1)
	h.openai.Handle(h.model.answer)
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	for id, text := range map[string]int{"keeper": 0, "shop": 1} {
		path := h.file("extensions", id, "manifest.yaml")
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, err
		}
		manifest := strings.Split(fmt.Sprintf(manifests, self), "---\n")[text]
		err := errors.Join(os.WriteFile(path, []byte(manifest), 0o600), consenttest.Allow(dir, id, manifest))
		if err != nil {
			return nil, err
		}
	}
	text := fmt.Sprintf("agents: {default: keeper, enabled: [keeper]}\nchannels: {%s: {allow_from: [\"*\"]}}\n%s",
		channelID(channel), withChannel(channel, config))
	if err := os.WriteFile(h.file("config.yaml"), []byte(text), 0o600); err != nil {
		return nil, err
	}
	h.out, err = os.Create(h.file("kernel.out"))
	homes.Store(h, true)
	return h, err
}

// withChannel enables a channel in a configuration: not all are by themselves.
func withChannel(channel, config string) string {
	const extensions = "extensions: {"
	enabled := extensions + channelID(channel) + ": {enabled: true}"
	if strings.Contains(config, extensions) {
		return strings.Replace(config, extensions, enabled+", ", 1)
	}
	return config + enabled + "}\n"
}

func (h *home) file(parts ...string) string {
	return filepath.Join(append([]string{h.dir}, parts...)...)
}

// sent is called for each message that the platform accepts.
func (h *home) sent(m arrived) {
	h.mu.Lock()
	f := h.onSent
	h.mu.Unlock()
	if f != nil {
		f(m)
	}
}

func (h *home) onMessage(f func(arrived)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.onSent = f
}

// start starts a kernel.
func (h *home) start() error {
	cmd := exec.Command(h.binary, "run")
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + h.dir, "SWITCHBOARD_HOME=" + h.dir, "TZ=Europe/Berlin",
		"SWITCHBOARD_CRASH_OFTEN=1",
		"OPENAI_API_KEY=faults", "OPENAI_BASE_URL=" + h.openai.BaseURL(), "OPENAI_MODEL=instant",
	}, append(h.platform.env(), h.extra...)...)
	cmd.Stdout, cmd.Stderr = h.out, h.out
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.kernel, h.ended = cmd, ended
	return nil
}

// pid returns the kernel's pid, 0 if none runs.
func (h *home) pid() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.kernel == nil {
		return 0
	}
	select {
	case <-h.ended:
		return 0
	default:
		return h.kernel.Process.Pid
	}
}

// crash kills the kernel with -9, and watches for leftover processes.
func (h *home) crash() { h.watch(h.kill()) }

// kill kills a running kernel with -9, and returns its descendants.
func (h *home) kill() []processes.Process {
	pid := h.pid()
	if pid == 0 {
		return nil
	}
	were := processes.Below(pid)
	_ = h.kernel.Process.Kill()
	<-h.ended
	return were
}

// watch records the processes that do not end by themselves.
func (h *home) watch(were []processes.Process) {
	h.leaving.Go(func() {
		for _, p := range processes.Left(were, 30*time.Second) {
			h.mu.Lock()
			h.left = append(h.left, fmt.Sprintf("%d %s", p.PID, p.Command))
			h.mu.Unlock()
		}
	})
}

// end is crash for the last kernel: processes that the shop started beside itself live
// until the next shop ends them.
func (h *home) end() {
	were := h.kill()
	for _, p := range were {
		if idle(p) {
			p.Kill()
		}
	}
	h.watch(slices.DeleteFunc(were, idle))
}

// close ends everything. It keeps the directory of a home with a problem.
func (h *home) close(keep bool) {
	h.end()
	h.leaving.Wait()
	for _, p := range h.besides() { // a shop may have been starting
		p.Kill()
	}
	homes.Delete(h)
	h.platform.close()
	h.openai.Close()
	_ = h.out.Close()
	if !keep {
		_ = os.RemoveAll(h.dir)
	}
}

// write sends a message of a person in a chat.
func (h *home) write(chat int64, token string) {
	h.platform.write(chat, "message "+token)
}

var errTime = errors.New("it took too long")

// until polls a condition.
func until(what string, longest time.Duration, done func() bool) error {
	for deadline := time.Now().Add(cmp.Or(longest, patience)); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: %w", what, errTime)
		}
	}
	return nil
}
