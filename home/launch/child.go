package launch

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
	"github.com/switchboard-run/switchboard/contract/sandbox"
	"github.com/switchboard-run/switchboard/kernel/supervisor"
)

// longestHello is how much of a wrong handshake an error repeats, in bytes.
const longestHello = 512

// drainGrace is the time after an exit in which its last output is read; a process that
// left the group may hold the pipe open for longer.
const drainGrace = 200 * time.Millisecond

// forever stands for no timeout where go-plugin insists on one.
const forever = 365 * 24 * time.Hour

// child is a process that go-plugin connects to and this package runs: in a process
// group of its own. In contrast to go-plugin's own runner it gives the process no
// stdin, notices the exit itself instead of the end of the output, which a
// grandchild can hold open, and kills the whole group. Of the output, go-plugin gets
// the first line.
type child struct {
	supervisor.Process
	cmd     *exec.Cmd
	options Options
	spawner *spawner
	output  Output
	ended   func(cause error) // ends the context of the process

	handshake *io.PipeReader // the first line of stdout
	hello     string         // likewise; set before handshake has it
	reading   sync.WaitGroup // of stdout and stderr

	mu     sync.Mutex
	dead   bool
	killed string           // the reason; empty: not killed
	opened *grpc.ClientConn // by go-plugin
}

var _ runner.Runner = (*child)(nil)

// Launch implements supervisor.Launcher.
func (l *Launcher) Launch(ctx context.Context, x supervisor.Launch) (*supervisor.Process, error) {
	alive, end := context.WithCancelCause(context.Background())
	out := l.options.Output(x.IDs)
	c := &child{
		Process: supervisor.Process{Context: alive, Done: make(chan struct{}), Output: out},
		cmd:     newCommand(x), options: l.options, spawner: l.spawner, output: out,
		ended: func(cause error) { end(supervisor.GoneError{Reason: cause}) },
	}
	stdout, stderr := c.lines("stdout"), c.lines("stderr")
	// Each process has a Client of its own: a used one answers with the address of the
	// dead process.
	client := plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig:  contract.Handshake,
		Plugins:          plugin.PluginSet{},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		SkipHostEnv:      true,
		AutoMTLS:         x.AutoMTLS,
		// Deadlines are enforced by killing the process, which unblocks whatever
		// go-plugin is waiting for.
		StartTimeout:     forever,
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: l.options.RunDir},
		RunnerFunc: func(_ hclog.Logger, cmd *exec.Cmd, dir string) (runner.Runner, error) {
			c.Sockets = dir
			c.cmd.Env = slices.Concat(x.Env, cmd.Env) // the last one of a name counts
			if x.Policy != nil {
				policy := *x.Policy
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
		GRPCDialOptions: append(contract.DialOptions(), grpc.WithChainStreamInterceptor(c.noteConn)),
	})
	kill := sync.OnceFunc(client.Kill)
	c.Process.Kill = c.kill
	c.Stopped = func() bool { return l.options.Processes.Stopped(c.PID) }
	c.Quit = func() { go kill() } // it blocks while the process does not answer
	c.Release = func() {
		kill()
		_, _ = stdout.Close(), stderr.Close()
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.opened != nil {
			_ = c.opened.Close()
		}
		_ = os.RemoveAll(c.Sockets)
	}

	stop := context.AfterFunc(ctx, func() { c.kill(context.Cause(ctx).Error()) })
	conn, err := connect(client, x.AutoMTLS)
	if !stop() && ctx.Err() != nil {
		err = cmp.Or(err, context.Cause(ctx))
	}
	if err != nil {
		err = c.explain(ctx, err)
		c.ended(err)
		c.Release()
		return nil, err
	}
	c.Conn = conn
	return &c.Process, nil
}

// connect starts the process and opens the connection.
func connect(client *plugin.Client, mtls bool) (*grpc.ClientConn, error) {
	addr, err := client.Start()
	if err != nil {
		return nil, err
	}
	if addr.Network() != "unix" && !mtls {
		return nil, supervisor.Failure{Permanent: true, Err: fmt.Errorf("the extension listens on %s %s without "+
			"encryption: use a unix socket, or set AutoMTLS", addr.Network(), addr)}
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
	if c.PID == 0 { // not started
		return err
	}
	c.kill("the start failed")
	<-c.Done
	failure := supervisor.Failure{Err: err}
	_ = errors.As(err, &failure)
	hello := strings.TrimSpace(c.hello)
	fields := strings.Split(hello, "|")
	greeted := len(fields) >= 4 && fields[0] == "1"
	switch {
	case ctx.Err() != nil:
		failure = supervisor.Failure{Err: context.Cause(ctx)}
	case failure.Permanent:
	case greeted && fields[1] != fmt.Sprint(contract.ProtocolVersion):
		failure.Permanent = true
		failure.Err = fmt.Errorf("the extension speaks version %s of the protocol and this kernel version %d: "+
			"build both against the same one", fields[1], contract.ProtocolVersion)
	case greeted:
		failure.Err = fmt.Errorf("connect to the extension after its handshake: %w (%s)", err, c.Exit.Reason)
	case hello != "":
		failure.Err = fmt.Errorf("the extension wrote %q to stdout where the handshake was expected: "+
			"stdout belongs to the protocol, log on stderr", contract.Truncate(hello, longestHello, "…"))
	default:
		failure.Err = fmt.Errorf("the process ended before its handshake: %s", c.Exit.Reason)
	}
	failure.Crash = c.Exit.Crash
	return failure
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
	return newLines(c.Context, func(line []byte) { c.output.Line(stream, line) })
}

func (c *child) spawn() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.killed != "" {
		c.cmd.Err = errors.New(c.killed)
	}
	err := c.spawner.do(func() error { return c.options.Processes.Start(c.cmd) })
	if err == nil {
		c.PID = c.cmd.Process.Pid
	}
	return err
}

// watch waits for the end of the process and of its output.
func (c *child) watch(stdout, stderr io.Closer) {
	if awaitExit(c.PID) {
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

	c.options.Processes.Sweep(c.PID)
	summary, full := c.output.Last()
	if killed == "" && summary != "" && !clean {
		reason += ": " + summary
	}
	c.Exit = supervisor.Exit{Clean: clean, Killed: killed != "", Reason: reason, Crash: full}
	close(c.Done)
}

// endGroup kills the rest of the process group, once: afterwards its number may
// belong to another group. It returns why the process was killed.
func (c *child) endGroup() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.dead {
		_ = syscall.Kill(-c.PID, syscall.SIGKILL)
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
	if c.PID != 0 {
		_ = syscall.Kill(-c.PID, syscall.SIGKILL)
	}
}

// Wait returns when the process has exited and its output has been read.
func (c *child) Wait(context.Context) error {
	<-c.Done
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
	if c.PID == 0 {
		return ""
	}
	return strconv.Itoa(c.PID)
}

func (c *child) Stdout() io.ReadCloser                            { return c.handshake }
func (c *child) Stderr() io.ReadCloser                            { return io.NopCloser(strings.NewReader("")) }
func (c *child) Name() string                                     { return c.cmd.Path }
func (c *child) Diagnose(context.Context) string                  { return "" }
func (c *child) PluginToHost(n, a string) (string, string, error) { return n, a, nil }
func (c *child) HostToPlugin(n, a string) (string, string, error) { return n, a, nil }
