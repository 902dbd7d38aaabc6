package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/kernel/sandbox"
)

// forever stands for no timeout where go-plugin insists on one.
const forever = 365 * 24 * time.Hour

// pluginProcess is a process run through go-plugin. Each has a Client of its
// own: a used one answers with the address of the dead process.
type pluginProcess struct {
	client *plugin.Client
	runner *groupRunner
	conn   *grpc.ClientConn
	ctx    context.Context

	quit    sync.Once
	ending  sync.WaitGroup // go-plugin's Kill
	syncing sync.WaitGroup // readers of what go-plugin redirects
	synced  []io.Closer

	mu    sync.Mutex
	conns map[*grpc.ClientConn]bool // all that go-plugin opened
	dir   string                    // of its socket
}

var _ process = (*pluginProcess)(nil)

// pluginLauncher starts processes whose sockets live in runDir.
func pluginLauncher(runDir string, spawner *spawner) launcher {
	return func(ctx context.Context, l launch) (process, error) {
		if l.Serve != nil {
			return startLocal(l.Serve)
		}
		return startPlugin(ctx, runDir, spawner, l)
	}
}

func startPlugin(ctx context.Context, runDir string, spawner *spawner, l launch) (process, error) {
	alive, cancel := context.WithCancelCause(context.Background())
	p := &pluginProcess{ctx: alive, conns: map[*grpc.ClientConn]bool{}}
	p.runner = &groupRunner{
		cmd: newCommand(l), spawner: spawner, output: newOutput(l.IDs, l.Log),
		alive: alive, cancel: func(cause error) { cancel(goneError{cause}) }, ended: make(chan struct{}),
	}
	p.client = plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig:  contract.Handshake,
		Plugins:          plugin.PluginSet{contract.PluginName: connection{}},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		SkipHostEnv:      true,
		AutoMTLS:         l.AutoMTLS,
		// Deadlines are enforced by killing the process, which unblocks whatever
		// go-plugin is waiting for.
		StartTimeout:     forever,
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: runDir},
		RunnerFunc: func(_ hclog.Logger, cmd *exec.Cmd, dir string) (runner.Runner, error) {
			p.mu.Lock()
			p.dir = dir
			p.mu.Unlock()
			p.runner.cmd.Env = slices.Concat(l.Env, cmd.Env) // the last one of a name counts
			if l.Policy != nil {
				p.runner.cmd.Env = append(p.runner.cmd.Env, sandbox.Variable+"="+withSockets(l.Policy, dir).Encode())
			}
			return p.runner, nil
		},
		// Off also keeps go-plugin from parsing the process's log lines.
		Logger:          hclog.New(&hclog.LoggerOptions{Level: hclog.Off}),
		SyncStdout:      p.redirected("stdout"),
		SyncStderr:      p.redirected("stderr"),
		GRPCDialOptions: append(dialOptions(), grpc.WithChainStreamInterceptor(p.noteConn)),
	})

	stop := context.AfterFunc(ctx, func() { p.runner.kill(context.Cause(ctx).Error()) })
	err := p.connect(l.AutoMTLS)
	if !stop() && ctx.Err() != nil {
		err = cmp.Or(err, context.Cause(ctx))
	}
	if err == nil {
		return p, nil
	}
	err = p.explain(ctx, err)
	cancel(err)
	p.Release()
	return nil, err
}

// dialOptions are those of a connection to an extension.
func dialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(contract.MaxMessage), grpc.MaxCallSendMsgSize(contract.MaxMessage)),
		grpc.WithStaticStreamWindowSize(contract.StreamWindow), grpc.WithStaticConnWindowSize(contract.ConnWindow),
	}
}

// redirected takes the output that the extension writes after go-plugin redirected
// it to the connection.
func (p *pluginProcess) redirected(stream string) io.Writer {
	read, write := io.Pipe()
	p.synced = append(p.synced, write)
	p.syncing.Go(func() { p.runner.output.take(stream, scanLines(p.ctx, read)) })
	return write
}

// connect starts the process and opens the connection.
func (p *pluginProcess) connect(mtls bool) error {
	addr, err := p.client.Start()
	if err != nil {
		return err
	}
	if addr.Network() != "unix" && !mtls {
		return permanent{fmt.Errorf("the extension listens on %s %s without encryption: use a unix socket, or set AutoMTLS",
			addr.Network(), addr)}
	}
	protocol, err := p.client.Client()
	if err != nil {
		return err
	}
	raw, err := protocol.Dispense(contract.PluginName)
	if err != nil {
		return err
	}
	p.conn = raw.(*grpc.ClientConn)
	return nil
}

// explain says why a start failed, and what to do.
func (p *pluginProcess) explain(ctx context.Context, err error) error {
	if p.runner.ID() == "" { // not started
		return err
	}
	p.runner.kill("the start failed")
	<-p.runner.ended
	if ctx.Err() != nil {
		return crashed{context.Cause(ctx), p.runner.exit.Crash}
	}
	if isPermanent(err) {
		return err
	}
	hello := strings.TrimSpace(p.runner.hello)
	fields := strings.Split(hello, "|")
	switch {
	case len(fields) >= 4 && fields[0] == "1" && fields[1] != fmt.Sprint(contract.ProtocolVersion):
		err = permanent{fmt.Errorf("the extension speaks version %s of the protocol and this kernel version %d: "+
			"build both against the same one", fields[1], contract.ProtocolVersion)}
	case len(fields) >= 4 && fields[0] == "1":
		err = fmt.Errorf("connect to the extension after its handshake: %w (%s)", err, p.runner.exit.Reason)
	case hello != "":
		err = fmt.Errorf("the extension wrote %q to stdout where the handshake was expected: "+
			"stdout belongs to the protocol, log on stderr", cut(hello))
	default:
		err = fmt.Errorf("the process ended before its handshake: %s", p.runner.exit.Reason)
	}
	return crashed{err, p.runner.exit.Crash}
}

// noteConn remembers the connections that go-plugin opens: when the process
// dies at the wrong moment it drops them without closing them.
func (p *pluginProcess) noteConn(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string,
	streamer grpc.Streamer, opts ...grpc.CallOption,
) (grpc.ClientStream, error) {
	p.mu.Lock()
	p.conns[conn] = true
	p.mu.Unlock()
	return streamer(ctx, desc, conn, method, opts...)
}

func (p *pluginProcess) PID() int                       { return p.runner.pid }
func (p *pluginProcess) Conn() grpc.ClientConnInterface { return p.conn }
func (p *pluginProcess) Context() context.Context       { return p.ctx }
func (p *pluginProcess) Done() <-chan struct{}          { return p.runner.ended }
func (p *pluginProcess) Exit() exit                     { return p.runner.exit }
func (p *pluginProcess) Kill(reason string)             { p.runner.kill(reason) }

func (p *pluginProcess) Conceal(secrets iter.Seq[string]) { p.runner.output.conceal(secrets) }
func (p *pluginProcess) Clean(text string) string         { return p.runner.output.clean(text) }

func (p *pluginProcess) Sockets() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dir
}

// Quit runs go-plugin's Kill in the background, because it blocks while the process
// does not answer.
func (p *pluginProcess) Quit() { p.quit.Do(func() { p.ending.Go(p.client.Kill) }) }

// Release waits for go-plugin's Kill, and removes what it leaves.
func (p *pluginProcess) Release() {
	p.Quit()
	p.ending.Wait()
	for _, w := range p.synced {
		_ = w.Close()
	}
	p.syncing.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.conns {
		_ = conn.Close()
	}
	if p.dir != "" {
		_ = os.RemoveAll(p.dir)
	}
}

// connection is the one entry of the plugin map: what it dispenses is the
// connection itself.
type connection struct{ plugin.NetRPCUnsupportedPlugin }

func (connection) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error {
	return errors.New("the kernel does not serve as an extension")
}

func (connection) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return conn, nil
}

// goneError is why a context of an instance ended.
type goneError struct{ reason error }

func (e goneError) Error() string   { return e.reason.Error() }
func (e goneError) Unwrap() []error { return []error{contract.ErrGone, e.reason} }
