package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/bench/ledger"
	"github.com/switchboard-run/switchboard/extensions/clichannel/terminal"
)

// terminals is the platform of people who sit at `switchboard chat`: one process for each
// chat, which survives kernels. What it has written is what its person has seen.
type terminals struct {
	home *home
	sent func(ledger.Arrived)

	mu     sync.Mutex
	chats  map[int64]*chat
	closed bool
	all    sync.WaitGroup
}

// chat is one process of `switchboard chat`, and its successors if it found no kernel.
type chat struct {
	id    int64
	lines []string  // of the person
	typed io.Writer // input of the process; nil: none runs
	end   func() error
	shown []ledger.Arrived
}

func newTerminals(h *home, sent func(ledger.Arrived)) *terminals {
	return &terminals{home: h, sent: sent, chats: map[int64]*chat{}}
}

// Env implements ledger.Platform.
func (p *terminals) Env() []string { return nil }

// Write implements ledger.Platform.
func (p *terminals) Write(id int64, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.chats[id]
	if c == nil {
		c = &chat{id: id}
		p.chats[id] = c
		p.all.Go(func() { p.sit(c) })
	}
	c.lines = append(c.lines, text)
	if c.typed != nil {
		_, _ = io.WriteString(c.typed, text+"\n")
	}
}

// Messages implements ledger.Platform.
func (p *terminals) Messages(id int64) []ledger.Arrived {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.chats[id]; c != nil {
		return slices.Clone(c.shown)
	}
	return nil
}

// Close implements ledger.Platform.
func (p *terminals) Close() {
	p.mu.Lock()
	p.closed = true
	for _, c := range p.chats {
		if c.typed != nil {
			_ = c.end()
		}
	}
	p.mu.Unlock()
	p.all.Wait()
}

// sit runs a chat until it is closed. One that found no kernel has sent nothing, and is
// started again; any other end is a text that nothing led to.
func (p *terminals) sit(c *chat) {
	for {
		err := p.run(c)
		p.mu.Lock()
		c.typed = nil
		if p.closed {
			p.mu.Unlock()
			return
		}
		if !strings.Contains(err, "open a chat: ") && !strings.Contains(err, terminal.ErrNoKernel.Error()) {
			c.shown = append(c.shown, ledger.Arrived{Chat: c.id, Text: "the terminal ended: " + err, At: time.Now()})
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
	}
}

// run runs one process, and returns the last that it wrote to its standard error.
func (p *terminals) run(c *chat) (last string) {
	cmd := exec.Command(p.home.binary, "chat", "--json", "--session", "chat-"+strconv.FormatInt(c.id, 10))
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + p.home.dir, "SWITCHBOARD_HOME=" + p.home.dir, "TZ=Europe/Berlin",
	}
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = p.begin(c, cmd)
	}
	if err != nil {
		return err.Error()
	}
	for in := json.NewDecoder(out); ; {
		var m terminal.Answer
		if in.Decode(&m) != nil {
			break
		}
		a := ledger.Arrived{Chat: c.id, Text: m.Text, At: time.Now()}
		p.sent(a)
		p.mu.Lock()
		c.shown = append(c.shown, a)
		p.mu.Unlock()
	}
	err = cmd.Wait()
	return fmt.Sprintf("%v: %s", err, said.String())
}

// begin starts the process and types what the person has written so far.
func (p *terminals) begin(c *chat, cmd *exec.Cmd) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return os.ErrClosed
	}
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return fmt.Errorf("start a terminal: %w", err)
	}
	c.typed, c.end = in, cmd.Process.Kill
	_, _ = io.WriteString(in, strings.Join(c.lines, "\n")+"\n") // fails if the process has ended, which run reports
	return nil
}
