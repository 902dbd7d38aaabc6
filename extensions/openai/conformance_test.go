package openai

import (
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/sdktest"
)

const manifest = "../../manifests/openai.yaml"

func TestConformance(t *testing.T) { //nolint:paralleltest // goroutines are counted
	s := openaitest.New(t)
	sdktest.Conformance(t, func() sdk.Extension { return New(ID) }, sdktest.Options{
		Manifest: manifest,
		Config:   map[string]any{"base_url": s.BaseURL(), "model": "gpt-test", "timeout": "1m"},
		Secrets:  map[string]string{KeyName: testKey},
	})
}

// End to end: the key from Init, deltas over gRPC, readiness to the kernel.
func TestThroughTheKernel(t *testing.T) {
	t.Parallel()
	s := openaitest.New(t)
	s.RequireKey(testKey)
	config := map[string]any{"base_url": s.BaseURL(), "model": "gpt-test"}

	k := sdktest.Start(t, New(ID), sdktest.Options{Manifest: manifest, Config: config})
	k.AwaitReadiness(sdk.Unconfigured)
	_, err := k.Complete(t.Context(), ask("hi"))
	if err == nil || !strings.Contains(err.Error(), KeyName) {
		t.Errorf("without a key: %v", err)
	}

	k = sdktest.Start(t, New(ID), sdktest.Options{
		Manifest: manifest, Config: config, Secrets: map[string]string{KeyName: testKey},
	})
	k.AwaitReadiness(sdk.Ready)
	s.Queue(openaitest.Answer{Text: "On it.", Calls: []openaitest.Call{openaitest.NewCall("list_channels",
		"{}")}})
	deltas, err := k.Complete(t.Context(), ask("hi"))
	if err != nil {
		t.Fatal(err)
	}
	var h heard
	for _, d := range deltas {
		_ = h.emit(d)
	}
	if h.text != "On it." || len(h.calls) != 1 || h.finish != "tool_calls" || h.model != "openai/gpt-test" ||
		h.usage == nil {
		t.Errorf("got %+v", h)
	}

	s.RequireKey("another")
	if _, err := k.Complete(t.Context(), ask("hi")); err == nil || strings.Contains(err.Error(), testKey) {
		t.Errorf("with a refused key: %v", err)
	}
	if r := k.AwaitReadiness(sdk.Degraded); !strings.Contains(r.GetDetail(), "refused") {
		t.Errorf("detail %q", r.GetDetail())
	}
}
