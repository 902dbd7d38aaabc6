package main

import (
	"testing"

	"github.com/switchboard-run/switchboard/extensions/openai"
	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/sdk/modelapi"
)

// A server that cannot be asked for its models is named without one.
func TestCheckOfAServerThatIsDown(t *testing.T) {
	t.Parallel()
	h, err := config.OpenHomeAt(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := provider{id: "local", kind: openai.Kind(), config: modelapi.Config{BaseURL: "http://127.0.0.1:1/v1"}}
	if c := p.check(t.Context(), h, ""); c.OK || c.Model != "local" || c.Fix != "start the server on 127.0.0.1:1" {
		t.Errorf("got %+v", c)
	}
	p.config.Model = "local/qwen3"
	if c := p.check(t.Context(), h, ""); c.Model != "local/qwen3" {
		t.Errorf("with a default model: %+v", c)
	}
}

func TestNearestModels(t *testing.T) {
	t.Parallel()
	all := []modelapi.Model{{ID: "gpt-4.1"}, {ID: "gpt-4.1-mini"}, {ID: "whisper-1"}}
	for name, want := range map[string]string{
		"gpt-4.1-mni": "it has: gpt-4.1-mini, gpt-4.1", "llama": "it has: gpt-4.1, gpt-4.1-mini, whisper-1",
	} {
		if got := nearest(name, all); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
