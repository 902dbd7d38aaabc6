package sdktest

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// Kernel is a fake kernel with one extension. Its methods may be called from
// any goroutine of the test; those that fail the test only from the test's own.
type Kernel struct {
	t       testing.TB
	options Options
	dir     string // of sockets
	state   *state
	script  script

	mu         sync.Mutex
	running    *running
	generation int64
	id         string
}

// running is one life of the extension.
type running struct {
	server     *sdk.Server
	extension  *grpc.Server
	kernel     *grpc.Server
	conn       *grpc.ClientConn
	deliveries *deliveries
	cancel     context.CancelFunc
}

// Start runs an extension. It is stopped at the end of the test.
func Start(t testing.TB, ext sdk.Extension, options Options) *Kernel {
	t.Helper()
	k := New(t, options)
	if err := k.TryStart(ext); err != nil {
		t.Fatalf("sdktest: start of the extension: %v", err)
	}
	return k
}

// New is a kernel that runs nothing yet: TryStart or Restart begin.
func New(t testing.TB, options Options) *Kernel {
	t.Helper()
	dir, err := os.MkdirTemp("", "sb") // short: the path of a socket has at most 104 bytes
	if err != nil {
		t.Fatalf("sdktest: %v", err)
	}
	k := &Kernel{t: t, options: options, dir: dir, state: newState(), id: options.ID}
	k.state.channels, k.state.commands = options.Channels, options.Commands
	if k.options.DataDir == "" {
		k.options.DataDir = t.TempDir()
	}
	for key, value := range options.KV {
		k.Put(key, value)
	}
	t.Cleanup(func() {
		k.Stop()
		_ = os.RemoveAll(dir)
	})
	return k
}

// TryStart starts an extension, or returns why it did not start.
func (k *Kernel) TryStart(ext sdk.Extension) error {
	k.t.Helper()
	k.mu.Lock()
	if k.running != nil {
		k.mu.Unlock()
		k.t.Fatal("sdktest: the extension runs already")
	}
	k.generation++
	if ext.ID != "" {
		k.id = ext.ID
	}
	init := k.options.init(k.t, k.id)
	init.Generation, init.RunDir = k.generation, k.dir
	init.KernelToken = rand.Text()
	k.mu.Unlock()

	r, err := k.run(ext, init)
	if err != nil {
		return err
	}
	k.mu.Lock()
	k.running = r
	k.mu.Unlock()

	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	before := k.state.reported()
	answer, err := extensionv1.NewExtensionClient(r.conn).Init(ctx, init)
	if err != nil {
		k.Lose()
		return contract.FromStatus(err)
	}
	if k.state.reported() == before { // else it has reported something newer already
		k.state.report(answer.GetReadiness())
	}
	return nil
}

// run connects the extension and the kernel's services over unix sockets.
func (k *Kernel) run(ext sdk.Extension, init *extensionv1.InitRequest) (*running, error) {
	server, err := sdk.NewServer(Logger(k.t), ext)
	if err != nil {
		return nil, err
	}
	r := &running{
		server: server, extension: grpc.NewServer(server.Options()...),
		kernel: newKernelServer(k, init.GetKernelToken()),
	}
	server.Register(r.extension)
	extension := k.listen(r.extension)
	init.KernelAddress = k.listen(r.kernel)
	r.conn = k.dial(extension)
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	r.deliveries = newDeliveries(ctx, k, r.conn)
	return r, nil
}

// Serve serves extensions without initializing them, for tests of the protocol.
func (k *Kernel) Serve(server *sdk.Server) grpc.ClientConnInterface {
	k.t.Helper()
	s := grpc.NewServer(server.Options()...)
	server.Register(s)
	conn := k.dial(k.listen(s))
	k.t.Cleanup(func() {
		_ = conn.Close()
		server.Close(0)
		s.Stop()
	})
	return conn
}

func (k *Kernel) dial(address string) *grpc.ClientConn {
	k.t.Helper()
	conn, err := grpc.NewClient(address,
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithIdleTimeout(0),
		grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(contract.MaxMessage), grpc.MaxCallSendMsgSize(contract.MaxMessage)))
	if err != nil {
		k.t.Fatalf("sdktest: %v", err)
	}
	return conn
}

// listen serves s on a fresh socket and returns its address.
func (k *Kernel) listen(s *grpc.Server) string {
	path := filepath.Join(k.dir, rand.Text()[:6])
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", path)
	if err != nil {
		k.t.Fatalf("sdktest: %v", err)
	}
	go func() { _ = s.Serve(listener) }()
	return "unix:" + path
}

// Restart shuts the extension down, if it runs, and starts another one with the
// same state.
func (k *Kernel) Restart(ext sdk.Extension) {
	k.t.Helper()
	k.Stop()
	if err := k.TryStart(ext); err != nil {
		k.t.Fatalf("sdktest: restart of the extension: %v", err)
	}
}

// Stop shuts the extension down as the kernel does, within Patience.
func (k *Kernel) Stop() {
	k.t.Helper()
	if err := k.Shutdown(Patience); err != nil {
		k.t.Errorf("sdktest: shutdown: %v", err)
	}
}

// Shutdown shuts the extension down within a grace.
func (k *Kernel) Shutdown(grace time.Duration) error {
	r := k.take()
	if r == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), grace+Patience)
	defer cancel()
	_, err := extensionv1.NewExtensionClient(r.conn).Shutdown(ctx, &extensionv1.ShutdownRequest{GraceMs: grace.Milliseconds()})
	r.close()
	return contract.FromStatus(err)
}

// Lose cuts the extension off, as when the kernel dies, and waits until the
// extension has ended itself.
func (k *Kernel) Lose() {
	if r := k.take(); r != nil {
		r.kernel.Stop()
		r.close()
	}
}

func (k *Kernel) take() *running {
	k.mu.Lock()
	defer k.mu.Unlock()
	r := k.running
	k.running = nil
	return r
}

func (r *running) close() {
	r.cancel()
	_ = r.conn.Close()
	r.deliveries.wait()
	r.server.Close(0)
	<-r.server.Done()
	r.extension.Stop()
	r.kernel.Stop()
}

// now is the running extension; the test fails if none runs.
func (k *Kernel) now() *running {
	k.t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.running == nil {
		k.t.Fatal("sdktest: the extension does not run")
	}
	return k.running
}

// ID is the extension's id.
func (k *Kernel) ID() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.id
}

// Conn is the connection to the extension, for what has no method here.
func (k *Kernel) Conn() grpc.ClientConnInterface { return k.now().conn }

// RunDir is the directory for sockets that Init names.
func (k *Kernel) RunDir() string { return k.dir }

// DataDir is the directory for files that Init names.
func (k *Kernel) DataDir() string { return k.options.DataDir }

// Health asks the extension.
func (k *Kernel) Health(ctx context.Context) (*extensionv1.Readiness, error) {
	r, err := extensionv1.NewExtensionClient(k.now().conn).Health(ctx, &extensionv1.HealthRequest{})
	return r, contract.FromStatus(err)
}

// Describe asks the extension.
func (k *Kernel) Describe() *extensionv1.Description {
	k.t.Helper()
	d, err := extensionv1.NewExtensionClient(k.now().conn).Describe(k.t.Context(), &extensionv1.DescribeRequest{})
	if err != nil {
		k.t.Fatalf("sdktest: describe: %v", err)
	}
	return d
}

// Configure replaces the configuration and the secrets for the next start.
func (k *Kernel) Configure(config any, secrets map[string]string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.options.Config, k.options.Secrets = config, secrets
}

// SetChannels replaces what Channels answers.
func (k *Kernel) SetChannels(channels ...*kernelv1.Channel) {
	k.state.mu.Lock()
	defer k.state.mu.Unlock()
	k.state.channels = channels
}

// Logger writes to the test's log until the test is over.
func Logger(t testing.TB) hclog.Logger {
	t.Helper()
	w := &testWriter{t: t}
	t.Cleanup(w.close)
	return hclog.New(&hclog.LoggerOptions{Level: hclog.Debug, Output: w, DisableTime: true})
}

// testWriter is a test's log; a test that is over has none any more.
type testWriter struct {
	mu sync.Mutex
	t  testing.TB
}

var _ io.Writer = (*testWriter)(nil)

func (w *testWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.t != nil {
		w.t.Logf("%s", p[:max(0, len(p)-1)])
	}
	return len(p), nil
}

func (w *testWriter) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.t = nil
}

// encode is a value as the kernel stores it.
func encode(t testing.TB, value any) []byte {
	t.Helper()
	switch v := value.(type) {
	case []byte:
		return v
	case json.RawMessage:
		return v
	}
	b, err := json.Marshal(value)
	if err != nil {
		t.Fatalf("sdktest: encode %T: %v", value, err)
	}
	return b
}
