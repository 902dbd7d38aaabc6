package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"

	"github.com/switchboard-run/switchboard/bench/ledger"
	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
)

// home is one home with its servers and its kernel.
type home struct {
	ledger.Ledger
	ledger.Kernel

	dir     string
	binary  string
	channel string // where people write
	openai  *openaitest.Server
	extra   []string // environment of the next kernel

	out *os.File

	mu     sync.Mutex
	onSent func(ledger.Arrived)
}

// homes lists the existing homes, to clean up after an interrupt.
var homes sync.Map

// newHome makes a home whose people write in a channel; config is added to its
// configuration.
func newHome(binary, channel, config string) (*home, error) {
	dir, err := os.MkdirTemp("/tmp", "sbf")
	if err != nil {
		return nil, err
	}
	h := &home{dir: dir, binary: binary, channel: channel}
	store := h.file("switchboard.db")
	h.Ledger = ledger.Ledger{
		Model: ledger.NewScript(), Patience: ledger.Patience,
		Noted:   func(file string) []string { return ledger.Noted(h.file("data", "shop", file)) },
		Pending: func() []string { return ledger.Pending(store) },
		Dead:    func() []string { return ledger.Dead(store) },
	}
	if channel == "terminal" {
		h.Platform = newTerminals(h, h.sent)
	} else if h.Platform, err = ledger.Platforms[channel](h.sent); err != nil {
		return nil, err
	}
	if h.openai, err = openaitest.Start(); err != nil {
		return nil, err
	}
	h.openai.Keep(1)
	h.openai.Handle(h.Model.Answer)
	if err := ledger.Furnish(dir, channel, config, "extension"); err != nil {
		return nil, err
	}
	h.out, err = os.Create(h.file("kernel.out"))
	homes.Store(h, true)
	return h, err
}

func (h *home) file(parts ...string) string {
	return filepath.Join(append([]string{h.dir}, parts...)...)
}

// sent is called for each message that the platform accepts.
func (h *home) sent(m ledger.Arrived) {
	h.mu.Lock()
	f := h.onSent
	h.mu.Unlock()
	if f != nil {
		f(m)
	}
}

func (h *home) onMessage(f func(ledger.Arrived)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.onSent = f
}

// start starts a kernel.
func (h *home) start() error {
	cmd := exec.Command(h.binary, "run")
	cmd.Env = append(ledger.Environment(h.dir, h.openai.BaseURL()), append(h.Platform.Env(), h.extra...)...)
	cmd.Stdout, cmd.Stderr = h.out, h.out
	return h.Start(cmd)
}

// crash kills the kernel with -9, and watches for leftover processes.
func (h *home) crash() { h.Watch(h.Kill()) }

// end is crash for the last kernel: processes that the shop started beside itself live
// until the next shop ends them.
func (h *home) end() {
	were := h.Kill()
	for _, p := range were {
		if ledger.Idle(p) {
			p.Kill()
		}
	}
	h.Watch(slices.DeleteFunc(were, ledger.Idle))
}

// close ends everything. It keeps the directory of a home with a problem.
func (h *home) close(keep bool) {
	h.end()
	h.ProcessesLeft()
	for _, p := range h.besides() { // a shop may have been starting
		p.Kill()
	}
	homes.Delete(h)
	h.Platform.Close()
	h.openai.Close()
	_ = h.out.Close()
	if !keep {
		_ = os.RemoveAll(h.dir)
	}
}

// write sends a message of a person in a chat.
func (h *home) write(chat int64, token string) {
	h.Platform.Write(chat, "message "+token)
}
