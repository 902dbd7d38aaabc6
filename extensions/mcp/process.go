package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/time/rate"

	"github.com/switchboard-run/switchboard/contract/mcpfile"
	"github.com/switchboard-run/switchboard/contract/sandbox"
	"github.com/switchboard-run/switchboard/contract/words"
)

// Limits of a process.
const (
	maxMessage   = 16 << 20
	writeTimeout = 30 * time.Second // of a message to a process that does not read
	// A process that sends more messages than messageRate waits, with all that it sends.
	messageRate  = 2000 // a second
	messageBurst = 10000
	// Lines of stderr, and lines of stdout that are no messages, are logged at this rate at
	// most.
	logRate  = 5 // a second
	logBurst = 100

	maxProcesses = 128
	maxMemory    = 4 << 30
	checkEvery   = 2 * time.Second
)

// process is a server that runs as a process of this machine. It is the transport and the
// connection of one session: messages are lines of its stdin and stdout.
type process struct {
	id   string // of the server
	cmd  *exec.Cmd
	log  hclog.Logger
	mark string // in its environment
	done chan struct{}

	stdin          *os.File
	writing        sync.Mutex
	incoming       chan jsonrpc.Message
	closed         chan struct{} // the connection is closed
	closing        sync.Once
	ending         sync.Once
	reading        sync.WaitGroup
	messages, said *rate.Limiter

	mu       sync.Mutex
	dead     bool
	cause    string // why it was ended; empty: it ended by itself
	first    []string
	last     []string
	noise    int
	exitText string
}

var (
	_ link           = (*process)(nil)
	_ mcp.Connection = (*process)(nil)
)

// startProcess starts a server in its sandbox.
func startProcess(ctx context.Context, l mcpfile.Launch, confine []string, log hclog.Logger) (*process, error) {
	p := &process{
		id: l.ID, log: log, done: make(chan struct{}), closed: make(chan struct{}), incoming: make(chan jsonrpc.Message),
		messages: rate.NewLimiter(messageRate, messageBurst), said: rate.NewLimiter(logRate, logBurst),
	}
	if err := p.prepare(l, confine); err != nil {
		return nil, err
	}
	var pipes [6]*os.File
	for i := 0; i < len(pipes); i += 2 {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(pipes[:])
			return nil, fmt.Errorf("start the server: %w", err)
		}
		pipes[i], pipes[i+1] = r, w //nolint:gosec // their number is even
	}
	p.stdin = pipes[1]
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = pipes[0], pipes[3], pipes[5]
	err := ctx.Err()
	if err == nil {
		err = spawn(p.cmd)
	}
	closeAll([]*os.File{pipes[0], pipes[3], pipes[5]})
	if err != nil {
		closeAll([]*os.File{pipes[1], pipes[2], pipes[4]})
		return nil, p.explain(err)
	}
	log.Info("started an MCP server", "pid", p.cmd.Process.Pid)
	p.reading.Go(func() { p.readMessages(pipes[2]) })
	p.reading.Go(func() { p.readErrors(pipes[4]) })
	go p.watch(pipes[2], pipes[4])
	go p.guard()
	return p, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}

// cacheTag marks a directory as one that need not be backed up.
const cacheTag = "Signature: 8a477f597d28d172789f06886806bc55\n# Packages that an MCP server downloaded.\n"

// prepare makes the directories of the server and its command.
func (p *process) prepare(l mcpfile.Launch, confine []string) error {
	home, temp, cache := filepath.Join(l.Dir, "home"), filepath.Join(l.Dir, "tmp"), filepath.Join(l.Dir, "cache")
	for _, dir := range []string{home, temp, cache} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("create the server's directory: %w", err)
		}
	}
	if err := os.WriteFile(filepath.Join(cache, "CACHEDIR.TAG"), []byte(cacheTag), 0o600); err != nil {
		return fmt.Errorf("create the server's directory: %w", err)
	}
	path := l.Command
	if !strings.ContainsRune(path, filepath.Separator) {
		found, err := exec.LookPath(path)
		if err != nil {
			return fmt.Errorf("the program %q is not in PATH: install it, or write its path as \"command\" in mcp.json", path)
		}
		path = found
	} else if !filepath.IsAbs(path) {
		return fmt.Errorf("the command %q in mcp.json must be a name in PATH or an absolute path", path)
	}
	if info, err := os.Stat(path); err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
		return fmt.Errorf("%s is no program that can be run: correct \"command\" in mcp.json", path)
	}
	args := append([]string{path}, l.Args...)
	p.mark = "SWITCHBOARD_MCP_SERVER=" + l.ID
	env := slices.Concat(l.Environ, []string{
		"HOME=" + home, "TMPDIR=" + temp, "XDG_CACHE_HOME=" + cache, "npm_config_cache=" + filepath.Join(cache, "npm"),
		"npm_config_update_notifier=false", "NO_UPDATE_NOTIFIER=1", p.mark,
	})
	if dir := os.Getenv(plugin.EnvUnixSocketDir); dir != "" { // by which the next kernel finds what this one leaves behind
		env = append(env, plugin.EnvUnixSocketDir+"="+dir)
	}
	for name, value := range l.Env {
		env = append(env, name+"="+value)
	}
	if l.Policy != nil && len(confine) > 0 {
		args = slices.Concat(confine, args)
		env = append(env, sandbox.Variable+"="+l.Policy.Encode())
	}
	p.cmd = exec.Command(args[0], args[1:]...) //nolint:gosec,noctx // the owner allowed it; no context ends it
	p.cmd.Env, p.cmd.SysProcAttr = env, processAttributes()
	if p.cmd.Dir = l.Cwd; l.Cwd == "" {
		p.cmd.Dir = home
	}
	return nil
}

func (p *process) explain(err error) error {
	if info, statErr := os.Stat(p.cmd.Dir); statErr != nil || !info.IsDir() {
		return fmt.Errorf("its directory %s does not exist: correct \"cwd\" in mcp.json", p.cmd.Dir)
	}
	return fmt.Errorf("start the server: %w", err)
}

// readMessages reads the lines of stdout. Those that are no messages are logged.
func (p *process) readMessages(from io.Reader) {
	defer p.hangUp()
	in := bufio.NewReaderSize(from, 64<<10)
	for {
		line, err := readLine(in, maxMessage)
		if errors.Is(err, errTooLong) {
			p.End(0, fmt.Sprintf("it sent a message of more than %d MiB", maxMessage>>20))
			_, _ = io.Copy(io.Discard, in)
			return
		}
		for _, m := range decode(line) {
			if m == nil {
				p.complain("stdout", line, &p.noise)
				continue
			}
			if p.messages.Allow() || p.pause() {
				select {
				case p.incoming <- m:
					continue
				case <-p.closed:
				}
			}
			_, _ = io.Copy(io.Discard, in) // so that its last writes do not block
			return
		}
		if err != nil {
			return
		}
	}
}

// pause waits until a message may be read; false: the connection is closed.
func (p *process) pause() bool {
	p.log.Debug("an MCP server sends too many messages")
	wait := p.messages.Reserve().Delay()
	select {
	case <-time.After(wait):
		return true
	case <-p.closed:
		return false
	}
}

// decode returns the messages of a line: one, or those of a batch. Nil stands for a line
// that is no message; an empty line has none.
func decode(line []byte) (all []jsonrpc.Message) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return nil
	}
	batch := []json.RawMessage{line}
	if line[0] == '[' {
		batch = nil
		if json.Unmarshal(line, &batch) != nil {
			return []jsonrpc.Message{nil}
		}
	}
	for _, one := range batch {
		var m jsonrpc.Message
		if bytes.Contains(one, []byte(`"jsonrpc"`)) {
			if decoded, err := jsonrpc.DecodeMessage(one); err == nil {
				m = decoded
			}
		}
		all = append(all, m)
	}
	return all
}

var errTooLong = errors.New("the line is too long")

// readLine returns the next line, without its end.
func readLine(in *bufio.Reader, most int) (line []byte, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) > most {
			return nil, errTooLong
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.TrimRight(line, "\r\n"), err
		}
	}
}

// Lines of an error that are kept, and their length in characters.
const (
	keptLines  = 5
	keptLength = 300
)

func (p *process) readErrors(from io.Reader) {
	in := bufio.NewReaderSize(from, 4<<10)
	for {
		line, more, err := in.ReadLine()
		if err != nil {
			return
		}
		for rest := more; rest && err == nil; {
			_, rest, err = in.ReadLine()
		}
		var count int
		p.complain("stderr", line, &count)
	}
}

// complain logs a line that is no message, and keeps the first and the last ones.
func (p *process) complain(stream string, line []byte, count *int) {
	text := strings.Map(words.Printable, string(line[:min(len(line), 4*keptLength)]))
	text = strings.TrimSpace(cut(text, keptLength))
	if text == "" {
		return
	}
	p.mu.Lock()
	*count++
	if len(p.first) < keptLines {
		p.first = append(p.first, text)
	} else {
		p.last = append(p.last, text)
		p.last = p.last[max(0, len(p.last)-keptLines):]
	}
	p.mu.Unlock()
	if p.said.Allow() {
		p.log.Info("an MCP server wrote", "stream", stream, "line", text)
	}
}

// Connect implements mcp.Transport.
func (p *process) Connect(context.Context) (mcp.Connection, error) { return p, nil }

// SessionID implements mcp.Connection.
func (p *process) SessionID() string { return "" }

// Read implements mcp.Connection.
func (p *process) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-p.incoming:
		return m, nil
	case <-p.closed:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write implements mcp.Connection.
func (p *process) Write(_ context.Context, m jsonrpc.Message) error {
	line, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	p.writing.Lock()
	defer p.writing.Unlock()
	_ = p.stdin.SetWriteDeadline(time.Now().Add(writeTimeout))
	if _, err := p.stdin.Write(append(line, '\n')); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			p.End(0, fmt.Sprintf("it did not read its input for %s", writeTimeout))
		}
		return fmt.Errorf("write to the server: %w", err)
	}
	return nil
}

// Close implements mcp.Connection. The process may end by itself first.
func (p *process) Close() error {
	p.hangUp()
	go p.End(stopGrace, "")
	return nil
}

// hangUp closes the connection.
func (p *process) hangUp() { p.closing.Do(func() { close(p.closed) }) }

// Done implements link.
func (p *process) Done() <-chan struct{} { return p.done }

// Reason implements link.
func (p *process) Reason() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cause != "" {
		return p.cause
	}
	text := p.exitText
	lines := slices.Concat(p.first, p.last)
	if len(lines) > 0 {
		text += ": " + strings.Join(lines, " / ")
	}
	return cut(text, 600)
}

// End implements link: it closes stdin, then sends SIGTERM, then SIGKILL to the group.
func (p *process) End(grace time.Duration, reason string) {
	p.mu.Lock()
	if p.cause == "" && !p.dead {
		p.cause = reason
	}
	p.mu.Unlock()
	p.hangUp()
	if grace == 0 {
		p.kill(syscall.SIGKILL)
		return
	}
	p.ending.Do(func() {
		_ = p.stdin.Close()
		for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
			select {
			case <-p.done:
				return
			case <-time.After(grace / 2):
				p.kill(signal)
			}
		}
		<-p.done
	})
	<-p.done
}

// kill sends a signal to the process group, unless its number may belong to another one.
func (p *process) kill(signal syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.dead {
		signalGroup(p.cmd.Process.Pid, signal)
	}
}

// endGroup kills the rest of the process group, once.
func (p *process) endGroup() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.dead {
		signalGroup(p.cmd.Process.Pid, syscall.SIGKILL)
		p.dead = true
	}
}

// drainGrace is how long the last output of a process is read.
const drainGrace = 200 * time.Millisecond

// watch waits for the end of the process, and ends what it leaves behind.
func (p *process) watch(stdout, stderr *os.File) {
	if awaitExit(p.cmd.Process.Pid) {
		p.endGroup()
	}
	state, err := p.cmd.Process.Wait()
	p.endGroup()
	text := "it ended"
	if err == nil {
		text = fmt.Sprintf("it ended (%s)", state)
	}
	timer := time.AfterFunc(drainGrace, func() { closeAll([]*os.File{stdout, stderr}) })
	p.reading.Wait()
	timer.Stop()
	closeAll([]*os.File{stdout, stderr, p.stdin})
	forget(p)
	sweep(p.mark)
	p.mu.Lock()
	p.exitText = text
	p.mu.Unlock()
	p.hangUp()
	p.log.Info("an MCP server ended", "pid", p.cmd.Process.Pid, "reason", p.Reason())
	close(p.done)
}

// guard ends the process when it uses too much, with all that it has started.
func (p *process) guard() {
	ticker := time.NewTicker(checkEvery)
	defer ticker.Stop()
	for {
		select {
		case <-p.done:
			return
		case <-ticker.C:
		}
		memory, processes := usage(p.cmd.Process.Pid)
		switch {
		case memory > maxMemory:
			p.End(0, fmt.Sprintf("it used %d MiB of memory, and %d are allowed", memory>>20, maxMemory>>20))
		case processes > maxProcesses:
			p.End(0, fmt.Sprintf("it ran %d processes, and %d are allowed", processes, maxProcesses))
		}
	}
}
