package sdktest_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/sdktest"
)

// faultEnv names the fault that TestFaulty has; without it, it has none to show.
const faultEnv = "SDKTEST_FAULT"

// faults are extensions that must not pass, with what the suite says of them.
var faults = map[string]struct {
	ext  func() sdk.Extension
	want string
}{
	"undeclared tools": {func() sdk.Extension {
		return sdk.Extension{ID: "bare", Tools: []sdk.Tool{tool("fine", `{"type":"object"}`)}}
	}, `it has tools, but the manifest lacks "provides: {tools: true}"`},
	"no tools": {func() sdk.Extension {
		return sdk.Extension{ID: "faulty"}
	}, "the manifest provides tools, which it does not report"},
	"undeclared command": {func() sdk.Extension {
		t := tool("fine", `{"type":"object"}`)
		t.Command = "fine"
		return sdk.Extension{ID: "faulty", Tools: []sdk.Tool{t}}
	}, `is the command /fine, but the manifest lacks`},
	"bad tool name": {func() sdk.Extension {
		return sdk.Extension{ID: "faulty", Tools: []sdk.Tool{tool("Not Fine", `{"type":"object"}`)}}
	}, `invalid tool name "Not Fine"`},
	"schema that is none": {func() sdk.Extension {
		return sdk.Extension{ID: "faulty", Tools: []sdk.Tool{tool("fine", `{"type":"objekt"}`)}}
	}, "the schema of the tool faulty/fine: type: must be one of"},
	"panic on garbage": {func() sdk.Extension {
		return sdk.Extension{ID: "faulty", Handle: func(_ context.Context, e sdk.Event) (sdk.Effects, error) {
			var v map[string]any
			_ = json.Unmarshal(e.Payload, &v)
			v["seen"] = true
			return nil, nil
		}}
	}, "it panicked: handler: panic: assignment to entry in nil map"},
	"acks what it does not know": {func() sdk.Extension {
		return sdk.Extension{ID: "faulty", Handle: func(context.Context, sdk.Event) (sdk.Effects, error) { return nil, nil }}
	}, "an unknown topic is not dropped with a reason"},
	"fails at a result that it does not know": {func() sdk.Extension {
		return sdk.Extension{ID: "faulty", Results: func(context.Context, sdk.CallResult) (sdk.Effects, error) {
			return nil, errors.New("which call?")
		}}
	}, `the result "{\"status\":\"ok\"}" of a call that it did not make is neither taken nor dropped`},
	"leaks": {func() sdk.Extension {
		return sdk.Extension{ID: "faulty", Start: func(context.Context, *sdk.Kernel) error {
			go func() { select {} }()
			return nil
		}}
	}, "goroutines are left"},
	"needs configuration": {func() sdk.Extension {
		return sdk.Extension{ID: "faulty", Start: func(_ context.Context, k *sdk.Kernel) error {
			if k.Secret("TOKEN") == "" {
				panic("no token")
			}
			return nil
		}}
	}, "it panicked: faulty: initialize the extension: start extension faulty: start: panic: no token"},
	"wrong name": {func() sdk.Extension { return sdk.Extension{ID: "other"} }, "this process serves other, not faulty"},
}

func tool(name, schema string) sdk.Tool {
	call := func(context.Context, sdk.ToolCall) (sdk.ToolResult, error) { return sdk.ToolResult{}, nil }
	return sdk.Tool{Name: name, Description: "A tool.", Schema: json.RawMessage(schema), Call: call}
}

func TestFaulty(t *testing.T) { //nolint:paralleltest // goroutines are counted
	fault, ok := faults[os.Getenv(faultEnv)]
	if !ok {
		t.Skip("run by TestConformanceFindsFaults")
	}
	manifest := "testdata/faulty/manifest.yaml"
	if fault.ext().ID == "bare" {
		manifest = "testdata/bare/manifest.yaml"
	}
	sdktest.Conformance(t, fault.ext, sdktest.Options{Manifest: manifest, Secrets: map[string]string{"TOKEN": "t"}})
}

func TestConformanceFindsFaults(t *testing.T) {
	t.Parallel()
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(os.Args[0], "-test.run=^TestFaulty$")
			cmd.Env = append(os.Environ(), faultEnv+"="+name)
			out, err := cmd.CombinedOutput()
			if err == nil {
				t.Fatalf("the suite passes:\n%s", out)
			}
			if !strings.Contains(string(out), fault.want) {
				t.Errorf("the suite does not say %q:\n%s", fault.want, out)
			}
		})
	}
}
