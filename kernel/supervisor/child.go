package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/kernel/sandbox"
)

// longestHello is how much of a wrong handshake an error repeats, in bytes.
const longestHello = 512

// forever stands for no timeout where go-plugin insists on one.
const forever = 365 * 24 * time.Hour

// child is a process that go-plugin connects to and this package runs: in a process
// group of its own. In contrast to go-plugin's own runner it gives the process no
// stdin, notices the exit itself instead of the end of the output, which a
// grandchild can hold open, and kills the whole group. Of the output, go-plugin gets
// the first line.
type child struct {
	process
	cmd   *exec.Cmd
	s     *Supervisor
	ended func(cause error) // ends the context of the process

	handshake *io.PipeReader // the first line of stdout
	hello     string         // likewise; set before handshake has it
	reading   sync.WaitGroup // of stdout and stderr

	mu     sync.Mutex
	dead   bool
	killed string           // the reason; empty: not killed
	opened *grpc.ClientConn // by go-plugin
}

var _ runner.Runner = (*child)(nil)

// startChild starts a process whose socket lives in runDir.
func (s *Supervisor) startChild(ctx context.Context, runDir string, l launch) (*process, error) {
	alive, end := context.WithCancelCause(context.Background())
	c := &child{
		process: process{ctx: alive, done: make(chan struct{}), output: s.options.Output(l.IDs)},
		cmd:     newCommand(l), s: s,
		ended: func(cause error) { end(goneError{cause}) },
	}
	stdout, stderr := c.lines("stdout"), c.lines("stderr")
	// Each process has a Client of its own: a used one answers with the address of the
	// dead process.
	client := plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig:  contract.Handshake,
		Plugins:          plugin.PluginSet{},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		SkipHostEnv:      true,
		AutoMTLS:         l.AutoMTLS,
		// Deadlines are enforced by killing the process, which unblocks whatever
		// go-plugin is waiting for.
		StartTimeout:     forever,
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: runDir},
		RunnerFunc: func(_ hclog.Logger, cmd *exec.Cmd, dir string) (runner.Runner, error) {
			c.sockets = dir
			c.cmd.Env = slices.Concat(l.Env, cmd.Env) // the last one of a name counts
			if l.Policy != nil {
				policy := *l.Policy
				policy.Write = append(slices.Clone(policy.Write), dir)
				c.cmd.Env = append(c.cmd.Env, sandbox.Variable+"="+policy.Encode())
			}
			return c, nil
		},
		// Off also keeps go-plugin from parsing the process's log lines.
		Logger: hclog.New(&hclog.LoggerOptions{Level: hclog.Off}),
		// What the extension writes after go-plugin redirected it to the connection.
		SyncStdout:      stdout,
		SyncStderr:      stderr,
		GRPCDialOptions: append(dialOptions(), grpc.WithChainStreamInterceptor(c.noteConn)),
	})
	kill := sync.OnceFunc(client.Kill)
	c.process.kill = c.kill
	c.quit = func() { go kill() } // it blocks while the process does not answer
	c.release = func() {
		kill()
		_, _ = stdout.Close(), stderr.Close()
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.opened != nil {
			_ = c.opened.Close()
		}
		_ = os.RemoveAll(c.sockets)
	}

	stop := context.AfterFunc(ctx, func() { c.kill(context.Cause(ctx).Error()) })
	conn, err := connect(client, l.AutoMTLS)
	if !stop() && ctx.Err() != nil {
		err = cmp.Or(err, context.Cause(ctx))
	}
	if err != nil {
		err = c.explain(ctx, err)
		c.ended(err)
		c.release()
		return nil, err
	}
	c.conn = conn
	return &c.process, nil
}

// dialOptions are those of a connection to an extension.
func dialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(contract.MaxMessage), grpc.MaxCallSendMsgSize(contract.MaxMessage)),
		grpc.WithStaticStreamWindowSize(contract.StreamWindow), grpc.WithStaticConnWindowSize(contract.ConnWindow),
	}
}

// connect starts the process and opens the connection.
func connect(client *plugin.Client, mtls bool) (*grpc.ClientConn, error) {
	addr, err := client.Start()
	if err != nil {
		return nil, err
	}
	if addr.Network() != "unix" && !mtls {
		return nil, permanent{fmt.Errorf("the extension listens on %s %s without encryption: use a unix socket, "+
			"or set AutoMTLS", addr.Network(), addr)}
	}
	protocol, err := client.Client()
	if err != nil {
		return nil, err
	}
	return protocol.(*plugin.GRPCClient).Conn, nil // the only protocol that is allowed
}

// noteConn notes the connection that go-plugin opened: when the process dies at the
// wrong moment, go-plugin drops it without closing it.
func (c *child) noteConn(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string,
	streamer grpc.Streamer, opts ...grpc.CallOption,
) (grpc.ClientStream, error) {
	c.mu.Lock()
	if c.opened != nil && c.opened != conn {
		_ = c.opened.Close()
	}
	c.opened = conn
	c.mu.Unlock()
	return streamer(ctx, desc, conn, method, opts...)
}

// explain says why a start failed, and what to do.
func (c *child) explain(ctx context.Context, err error) error {
	if c.pid == 0 { // not started
		return err
	}
	c.kill("the start failed")
	<-c.done
	hello := strings.TrimSpace(c.hello)
	fields := strings.Split(hello, "|")
	greeted := len(fields) >= 4 && fields[0] == "1"
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case isPermanent(err):
	case greeted && fields[1] != fmt.Sprint(contract.ProtocolVersion):
		err = permanent{fmt.Errorf("the extension speaks version %s of the protocol and this kernel version %d: "+
			"build both against the same one", fields[1], contract.ProtocolVersion)}
	case greeted:
		err = fmt.Errorf("connect to the extension after its handshake: %w (%s)", err, c.exit.Reason)
	case hello != "":
		err = fmt.Errorf("the extension wrote %q to stdout where the handshake was expected: "+
			"stdout belongs to the protocol, log on stderr", contract.Truncate(hello, longestHello, "…"))
	default:
		err = fmt.Errorf("the process ended before its handshake: %s", c.exit.Reason)
	}
	return crashed{err, c.exit.Crash}
}

// Start starts the process.
func (c *child) Start(context.Context) error {
	stdout, err := c.cmd.StdoutPipe()
	stderr, errToo := c.cmd.StderrPipe()
	c.cmd.Err = cmp.Or(c.cmd.Err, err, errToo)
	if err := c.spawn(); err != nil {
		return err
	}
	handshake, first := io.Pipe()
	c.handshake = handshake
	out := c.lines("stdout")
	rest := out.take
	out.take = func(line []byte) {
		c.hello = string(line)
		if len(line) < maxLine { // else go-plugin stops in the middle of it
			_, _ = fmt.Fprintln(first, c.hello)
		}
		_ = first.Close()
		out.take = rest
	}
	c.reading.Go(func() {
		out.copy(stdout)
		_ = first.Close()
	})
	c.reading.Go(func() { c.lines("stderr").copy(stderr) })
	go c.watch(stdout, stderr)
	return nil
}

func (c *child) lines(stream string) *lines {
	return newLines(c.ctx, func(line []byte) { c.output.Line(stream, line) })
}

func (c *child) spawn() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.killed != "" {
		c.cmd.Err = errors.New(c.killed)
	}
	err := c.s.spawner.Do(func() error { return c.s.options.Processes.Start(c.cmd) })
	if err == nil {
		c.pid = c.cmd.Process.Pid
	}
	return err
}

// watch waits for the end of the process and of its output.
func (c *child) watch(stdout, stderr io.Closer) {
	if awaitExit(c.pid) {
		c.endGroup()
	}
	state, err := c.cmd.Process.Wait()
	killed := c.endGroup()

	clean := err == nil && state.Success()
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signal() != syscall.SIGKILL {
		killed = "" // it ended before
	}
	reason := cmp.Or(killed, fmt.Sprintf("the process ended by itself (%s)", state))
	c.ended(errors.New(reason)) // first: callers of the process wait for it

	timer := time.AfterFunc(drainGrace, func() { _, _ = stdout.Close(), stderr.Close() })
	c.reading.Wait()
	timer.Stop()
	_, _ = stdout.Close(), stderr.Close()

	c.s.options.Processes.Sweep(c.pid)
	summary, full := c.output.Last()
	if killed == "" && summary != "" && !clean {
		reason += ": " + summary
	}
	c.exit = exit{Clean: clean, Killed: killed != "", Reason: reason, Crash: full}
	close(c.done)
}

// endGroup kills the rest of the process group, once: afterwards its number may
// belong to another group. It returns why the process was killed.
func (c *child) endGroup() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.dead {
		_ = syscall.Kill(-c.pid, syscall.SIGKILL)
		c.dead = true
	}
	return c.killed
}

// kill ends the process group, even before it starts.
func (c *child) kill(reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead {
		return
	}
	c.killed = cmp.Or(c.killed, reason)
	if c.pid != 0 {
		_ = syscall.Kill(-c.pid, syscall.SIGKILL)
	}
}

// Wait returns when the process has exited and its output has been read.
func (c *child) Wait(context.Context) error {
	<-c.done
	return nil
}

// Kill is called by go-plugin when a handshake fails, or a process does not exit.
func (c *child) Kill(context.Context) error {
	if c.hello == "" {
		c.kill("the process closed stdout without a handshake")
	} else {
		c.kill("the process did not exit when asked to")
	}
	return nil
}

// ID is empty before the process has started: go-plugin has nothing to kill
// then.
func (c *child) ID() string {
	if c.pid == 0 {
		return ""
	}
	return strconv.Itoa(c.pid)
}

func (c *child) Stdout() io.ReadCloser                            { return c.handshake }
func (c *child) Stderr() io.ReadCloser                            { return io.NopCloser(strings.NewReader("")) }
func (c *child) Name() string                                     { return c.cmd.Path }
func (c *child) Diagnose(context.Context) string                  { return "" }
func (c *child) PluginToHost(n, a string) (string, string, error) { return n, a, nil }
func (c *child) HostToPlugin(n, a string) (string, string, error) { return n, a, nil }

// goneError is why a context of an instance ended.
type goneError struct{ reason error }

func (e goneError) Error() string   { return e.reason.Error() }
func (e goneError) Unwrap() []error { return []error{contract.ErrGone, e.reason} }
