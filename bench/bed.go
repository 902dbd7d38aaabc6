package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/switchboard-run/switchboard/bench/processes"
	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
)

type bench struct {
	binary string
	rounds int
	quick  bool
	stored int // settled events
	// earlier is another program, which this one is compared with.
	earlier string
	// prepare changes the homes of some measurements; nil: nothing does.
	prepare func(*bed) error
}

func (b *bench) build() error {
	b.binary = filepath.Join(os.TempDir(), fmt.Sprintf("switchboard-bench-%d", os.Getpid()))
	build := exec.Command("go", "build", "-o", b.binary, "github.com/switchboard-run/switchboard/cmd/switchboard")
	build.Stderr = os.Stderr
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	return build.Run()
}

// scale returns n, or a tenth of it with -short.
func (b *bench) scale(n int) int {
	if b.quick {
		return max(n/10, 1)
	}
	return n
}

// bed is one home, one kernel and the servers around it.
type bed struct {
	home     string
	telegram *telegramtest.Server
	model    *openaitest.Server
	kernel   *exec.Cmd
	replies  chan telegramtest.Message
	photo    *photo   // that comes with each message; nil: none
	chats    int      // that paced messages come from; 0: pacedChats
	people   int      // of a household; 0: none
	way      *way     // nil: over Telegram
	args     []string // of the kernel
}

// newBed makes a home and the servers, without a kernel.
func newBed() (*bed, error) {
	home, err := os.MkdirTemp("/tmp", "sbb")
	if err != nil {
		return nil, err
	}
	d := &bed{home: home, replies: make(chan telegramtest.Message, 1<<16)}
	onMessage := telegramtest.OnMessage(func(m telegramtest.Message) { d.replies <- m })
	if d.telegram, err = telegramtest.New(onMessage); err != nil {
		return nil, err
	}
	if d.model, err = openaitest.Start(); err != nil {
		return nil, err
	}
	d.model.Keep(1)
	d.model.Handle(func(r openaitest.Request) openaitest.Answer {
		return openaitest.Answer{Text: "You said: " + r.Last("user"), Pieces: 1}
	})
	config := "channels: {telegram_channel: {allow_from: [\"*\"]}}\n"
	return d, os.WriteFile(filepath.Join(home, "config.yaml"), []byte(config), 0o600)
}

// warmBed returns a new bed whose kernel has answered a few messages.
func (b *bench) warmBed() (*bed, error) {
	d, err := newBed()
	if err != nil {
		return nil, err
	}
	if err := d.start(b.binary); err != nil {
		return nil, err
	}
	return d, d.warm()
}

// environ is the environment of the kernel.
func (d *bed) environ() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + d.home, "SWITCHBOARD_HOME=" + d.home, "TZ=Europe/Berlin",
		"TELEGRAM_BOT_TOKEN=" + d.telegram.Token(), "TELEGRAM_API_URL=" + d.telegram.URL(),
		"OPENAI_API_KEY=bench", "OPENAI_BASE_URL=" + d.model.BaseURL(), "OPENAI_MODEL=instant",
	}
}

func (d *bed) start(binary string) error {
	d.kernel = exec.Command(binary, append([]string{"run"}, d.args...)...)
	d.kernel.Env = d.environ()
	if d.way != nil {
		d.kernel.Env = append(d.kernel.Env, d.way.env...)
	}
	d.kernel.Stderr = os.Stderr
	if len(d.args) > 0 { // it tells more than problems
		d.kernel.Stderr = nil
	}
	err := d.kernel.Start()
	if err != nil {
		d.kernel = nil // nothing to stop
	}
	return err
}

func (d *bed) stop() error {
	if d.kernel == nil {
		return nil
	}
	_ = d.kernel.Process.Signal(syscall.SIGTERM)
	err := d.kernel.Wait()
	d.kernel = nil
	return err
}

func (d *bed) close() {
	_ = d.stop()
	if d.way != nil {
		d.way.end()
	}
	d.telegram.Close()
	d.model.Close()
	_ = os.RemoveAll(d.home)
}

func (d *bed) say(chat int64, text string) {
	if d.way != nil {
		d.way.say(chat, text)
		return
	}
	in := telegramtest.Incoming{From: telegramtest.User{ID: chat, FirstName: "Anna"}, Text: text}
	if d.photo != nil {
		in.Media, in.File = "photo", d.photo.next()
	}
	d.telegram.Inject(in)
}

var errNoReply = errors.New("no reply within a minute")

func (d *bed) reply(ctx context.Context) (telegramtest.Message, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	select {
	case m := <-d.replies:
		return m, nil
	case <-ctx.Done():
		return telegramtest.Message{}, errNoReply
	}
}

// warm waits for the first replies.
func (d *bed) warm() error {
	for i := range 20 {
		d.say(1, fmt.Sprint("warm ", i))
		if _, err := d.reply(context.Background()); err != nil {
			return err
		}
	}
	return d.gather()
}

// quiet waits until there are no more requests and sends, and forgets the sends.
func (d *bed) quiet() error {
	const still = 300 * time.Millisecond
	asked, sent, since := d.model.Total(), d.telegram.Accepted(), time.Now()
	err := until("the agents did not come to rest", func() bool {
		if a, s := d.model.Total(), d.telegram.Accepted(); a != asked || s != sent {
			asked, sent, since = a, s, time.Now()
		}
		return time.Since(since) > still
	})
	for len(d.replies) > 0 {
		<-d.replies
	}
	return err
}

// tree returns the kernel's process and its descendants.
func (d *bed) tree() []int {
	pids := []int{d.kernel.Process.Pid}
	for _, p := range processes.Below(pids[0]) {
		pids = append(pids, p.PID)
	}
	return pids
}

// cpu returns the processor time of all processes so far.
func (d *bed) cpu() (total time.Duration) {
	for _, pid := range d.tree() {
		total += cpuOf(pid)
	}
	return total
}

func cpuOf(pid int) time.Duration { return processes.CPU(pid) }

// pss returns the memory of all processes, with shared pages counted once.
func (d *bed) pss() (kib int64, running int) {
	for _, pid := range d.tree() {
		if n := processes.PSS(pid); n > 0 {
			kib, running = kib+n, running+1
		}
	}
	return kib, running
}
