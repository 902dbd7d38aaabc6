package openai

import (
	"net/http"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/modelapi"
)

// Servers tell the windows of their models in APIs of their own.
func TestWindowOfLocalServers(t *testing.T) {
	t.Parallel()
	says := func(path string, answer any) func(*openaitest.Server) {
		return func(s *openaitest.Server) { s.ServeJSON(path, func(*http.Request) any { return answer }) }
	}
	ollama := func(o openaitest.Ollama) func(*openaitest.Server) {
		return func(s *openaitest.Server) { s.AsOllama(o) }
	}
	props := func(n any) func(*openaitest.Server) {
		return says("/props", map[string]any{"total_slots": 1, "default_generation_settings": map[string]any{"n_ctx": n}})
	}
	studio := func(model map[string]any) func(*openaitest.Server) { return says("/api/v0/models/qwen3", model) }
	for name, tt := range map[string]struct {
		serve func(*openaitest.Server)
		// asked is the window that `models list` shows, used that of a long request.
		asked, used int64
	}{
		"llama.cpp":         {props(16384), 16384, 16384},
		"llama.cpp, a text": {props("16384"), 0, 0},
		"llama.cpp, huge":   {props(1e200), 0, 0},
		"LM Studio, loaded": {studio(map[string]any{
			"state": "loaded", "max_context_length": 131072, "loaded_context_length": 8192,
		}), 8192, 8192},
		"LM Studio, unloaded": {studio(map[string]any{"state": "not-loaded", "max_context_length": 131072}), 0, 0},
		"LM Studio, no such path": {says("/props", map[string]any{
			"error": "Unexpected endpoint or method. (GET /props)"}), 0, 0},
		"Ollama, loaded": {ollama(openaitest.Ollama{
			Model: "qwen3:latest", Most: 40960, Served: 4096, Loaded: true,
		}), 4096, 4096},
		"Ollama, unloaded": {ollama(openaitest.Ollama{Model: "qwen3:latest", Most: 40960, Served: 32768}), 0, 32768},
		"Ollama, a fixed window": {ollama(openaitest.Ollama{Model: "qwen3:latest", Most: 40960,
			Parameters: "stop                           \"<|im_end|>\"\nnum_ctx                        16384\n"}), 16384, 16384},
		"Ollama, more than the model can have": {ollama(openaitest.Ollama{Model: "qwen3:latest", Most: 8192,
			Parameters: "num_ctx 131072"}), 8192, 8192},
		"an old Ollama": {ollama(openaitest.Ollama{Model: "qwen3:latest", Most: 40960, Loaded: true}), 4096, 4096},
		"Ollama, another model": {ollama(openaitest.Ollama{
			Model: "gemma3:4b", Most: 40960, Served: 4096, Loaded: true,
		}), 0, 0},
		"none of them": {func(*openaitest.Server) {}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := openaitest.New(t)
			f.NoKey()
			f.OnlyModels("qwen3")
			f.Always(openaitest.Say("ok"))
			tt.serve(f)
			server, err := modelapi.NewServer(Kind(), "local", modelapi.Config{BaseURL: f.BaseURL()}, "")
			if err != nil {
				t.Fatal(err)
			}
			defer server.Close()
			if got, _ := server.Window(t.Context(), "qwen3"); got != tt.asked {
				t.Errorf("asked for, the window is %d, want %d", got, tt.asked)
			}
			var told int64
			err = server.Complete(t.Context(), &sdk.CompleteRequest{Model: "qwen3", Messages: []*extensionv1.Message{
				{Role: "user", Content: strings.Repeat("word ", 2400)},
			}}, func(d *sdk.Delta) error {
				told = max(told, d.GetContext())
				return nil
			})
			if err != nil || told != tt.used {
				t.Errorf("a long request is told %d, want %d: %v", told, tt.used, err)
			}
		})
	}
}
