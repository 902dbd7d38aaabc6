package launch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// play is what the test binary does in one of the modes.
func play(mode string) {
	switch mode {
	case "host":
		playHost()
	case "extension":
		serveExtension(contract.Handshake)
	case "sdk":
		sdk.Serve(sdk.Extension{ID: "one"}, sdk.Extension{ID: "two"})
	case "stubborn": // ignores the end of its connection
		serveExtension(contract.Handshake)
		select {}
	case "other version":
		handshake := contract.Handshake
		handshake.ProtocolVersion = 7
		serveExtension(handshake)
	case "rubbish":
		fmt.Println("Hello, world!")
		hang()
	case "rubbish without end":
		for {
			fmt.Print("blah")
		}
	case "exit":
		fmt.Fprintln(os.Stderr, "cannot find the moon")
		os.Exit(3)
	case "silent":
		hang()
	case "mute": // closes stdout instead of saying anything
		_ = os.Stdout.Close()
		hang()
	case "hello only": // the handshake of a server that never answers
		l, err := net.Listen("unix", os.Getenv(plugin.EnvUnixSocketDir)+"/s")
		if err != nil {
			panic(err)
		}
		fmt.Printf("1|1|unix|%s|grpc\n", l.Addr())
		hang()
	case "hello and exit":
		fmt.Printf("1|1|unix|%s|grpc\n", os.Getenv(plugin.EnvUnixSocketDir)+"/s")
		os.Exit(4)
	case "tcp":
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			panic(err)
		}
		fmt.Printf("1|1|tcp|%s|grpc\n", l.Addr())
		hang()
	case "other service":
		plugin.Serve(&plugin.ServeConfig{
			HandshakeConfig: contract.Handshake,
			Plugins:         plugin.PluginSet{contract.PluginName: &nothing{}},
			GRPCServer:      plugin.DefaultGRPCServer,
			Logger:          hclog.NewNullLogger(),
		})
	case "grandchild":
		hang()
	default:
		panic("no such mode: " + mode)
	}
}

// hang hangs without being taken for a deadlock.
func hang() {
	for {
		time.Sleep(time.Hour)
	}
}

// behavior is what a test tells an extension in its configuration.
type behavior struct {
	InitError  string `json:"init_error,omitempty"`
	InitPanic  bool   `json:"init_panic,omitempty"`
	InitHang   bool   `json:"init_hang,omitempty"`
	InitExit   int    `json:"init_exit,omitempty"`
	Readiness  int32  `json:"readiness,omitempty"`
	StopHang   bool   `json:"stop_hang,omitempty"`
	ExitIfFile string `json:"exit_if_file,omitempty"` // crash in Init while this exists
}

func serveExtension(handshake plugin.HandshakeConfig) {
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: handshake,
		Plugins:         plugin.PluginSet{contract.PluginName: &testPlugin{}},
		GRPCServer: func(o []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(
				append(o, grpc.MaxRecvMsgSize(contract.MaxMessage), grpc.MaxSendMsgSize(contract.MaxMessage))...)
		},
		Logger: hclog.NewNullLogger(),
	})
}

type nothing struct{ plugin.NetRPCUnsupportedPlugin }

func (*nothing) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error { return nil }
func (*nothing) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.ErrUnsupported
}

type testPlugin struct{ nothing }

func (*testPlugin) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	x := &testExtension{behaviors: map[string]behavior{}, stderr: os.Stderr}
	extensionv1.RegisterExtensionServer(s, x)
	extensionv1.RegisterToolsServer(s, x)
	return nil
}

// testExtension is an extension on the generated code alone.
type testExtension struct {
	extensionv1.UnimplementedExtensionServer
	extensionv1.UnimplementedToolsServer
	stderr *os.File // the process's own; go-plugin replaces os.Stderr

	mu        sync.Mutex
	behaviors map[string]behavior
	held      []byte
}

func addressee(ctx context.Context) string {
	md, _ := metadata.FromIncomingContext(ctx)
	return strings.Join(md.Get(contract.ExtensionHeader), ",")
}

func (x *testExtension) behavior(ctx context.Context) behavior {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.behaviors[addressee(ctx)]
}

func (x *testExtension) Describe(
	ctx context.Context,
	_ *extensionv1.DescribeRequest,
) (*extensionv1.Description, error) {
	return &extensionv1.Description{Sdk: addressee(ctx), Tools: []*extensionv1.Tool{{Name: "do"}}}, nil
}

func (x *testExtension) Init(ctx context.Context, r *extensionv1.InitRequest) (*extensionv1.InitResponse, error) {
	var b behavior
	if err := json.Unmarshal(r.GetConfig(), &b); err != nil {
		return nil, err
	}
	x.mu.Lock()
	x.behaviors[addressee(ctx)] = b
	x.mu.Unlock()
	switch {
	case b.InitPanic:
		panic("no idea how to start")
	case b.InitHang:
		hang()
	case b.InitError != "":
		return nil, errors.New(b.InitError)
	case b.InitExit != 0:
		os.Exit(b.InitExit)
	}
	if b.ExitIfFile != "" {
		if _, err := os.Stat(b.ExitIfFile); err == nil {
			panic("the file is there")
		}
	}
	return &extensionv1.InitResponse{
		Readiness: &extensionv1.Readiness{State: extensionv1.Readiness_State(b.Readiness)},
	}, nil
}

func (x *testExtension) Health(context.Context, *extensionv1.HealthRequest) (*extensionv1.Readiness, error) {
	return &extensionv1.Readiness{}, nil
}

func (x *testExtension) Shutdown(
	ctx context.Context,
	_ *extensionv1.ShutdownRequest,
) (*extensionv1.ShutdownResponse, error) {
	if x.behavior(ctx).StopHang {
		hang()
	}
	return &extensionv1.ShutdownResponse{}, nil
}

// Call does what a test asks for.
func (x *testExtension) Call(ctx context.Context, r *extensionv1.CallRequest) (*extensionv1.CallResult, error) {
	answer := func(v any) (*extensionv1.CallResult, error) {
		return &extensionv1.CallResult{Content: fmt.Sprint(v)}, nil
	}
	argument := string(r.GetArguments())
	switch r.GetName() {
	case "who":
		return answer(addressee(ctx))
	case "environment":
		return answer(strings.Join(os.Environ(), "\n"))
	case "directory":
		dir, err := os.Getwd()
		return &extensionv1.CallResult{Content: dir}, err
	case "stdin":
		data, err := io.ReadAll(os.Stdin)
		return &extensionv1.CallResult{Content: string(data)}, err
	case "group":
		return answer(syscall.Getpgrp())
	case "exit":
		code, _ := strconv.Atoi(argument)
		os.Exit(code)
	case "panic":
		go panic("the sky is falling")
		hang()
	case "stderr":
		_, err := fmt.Fprintln(x.stderr, argument)
		return &extensionv1.CallResult{}, err
	case "stdout":
		_, err := fmt.Println(argument)
		return &extensionv1.CallResult{}, err
	case "hold": // memory
		n, _ := strconv.Atoi(argument)
		x.held = make([]byte, n)
		for i := 0; i < n; i += 4096 {
			x.held[i] = 1
		}
		return answer(len(x.held))
	case "grandchild", "escaped grandchild":
		// Its outputs are the extension's own.
		cmd := exec.Command(self())
		cmd.Env = append(os.Environ(), modeEnv+"=grandchild")
		cmd.Stdout, cmd.Stderr = os.NewFile(1, "stdout"), x.stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: r.GetName() == "escaped grandchild"}
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		return answer(cmd.Process.Pid)
	}
	return nil, errors.New("no such tool")
}
