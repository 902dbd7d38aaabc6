package openaitest

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// Serve makes the server serve a path of an API of its own.
func (s *Server) Serve(path string, h http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.own == nil {
		s.own = map[string]http.HandlerFunc{}
	}
	s.own[path] = h
}

// ServeJSON serves a path with an answer that is evaluated for each request.
func (s *Server) ServeJSON(path string, answer func(*http.Request) any) {
	s.Serve(path, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer(r))
	})
}

// Ollama is the state of a server of that kind with one model. The zero value has not loaded
// it.
type Ollama struct {
	Model      string // with its tag
	Most       int    // tokens that the model can have
	Parameters string // of its Modelfile
	Served     int    // tokens that it has once it is loaded; 0: an old version, which doesn't tell
	Loaded     bool
}

// AsOllama makes the server one of Ollama. The model is loaded by the first completion, or
// by a request that says so.
func (s *Server) AsOllama(o Ollama) {
	loaded := func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return o.Loaded || s.total > 0
	}
	s.ServeJSON("/api/show", func(r *http.Request) any {
		var body struct{ Model string }
		if json.NewDecoder(r.Body).Decode(&body) != nil || body.Model != o.Model && body.Model+":latest" != o.Model {
			return map[string]any{"error": fmt.Sprintf("model %q not found", body.Model)}
		}
		return map[string]any{
			"modelfile": "FROM x", "parameters": o.Parameters, "details": map[string]any{"family": "qwen3"},
			"model_info": map[string]any{"general.architecture": "qwen3", "qwen3.context_length": o.Most,
				"qwen3.embedding_length": 4096},
			"capabilities": []string{"completion", "tools"},
		}
	})
	s.ServeJSON("/api/generate", func(*http.Request) any {
		s.mu.Lock()
		defer s.mu.Unlock()
		o.Loaded = true
		return map[string]any{"model": o.Model, "response": "", "done": true, "done_reason": "load"}
	})
	s.ServeJSON("/api/ps", func(*http.Request) any {
		models := []any{}
		if loaded() {
			m := map[string]any{"name": o.Model, "model": o.Model, "size": 6_591_830_464}
			if o.Served > 0 {
				m["context_length"] = o.Served
			}
			models = append(models, m)
		}
		return map[string]any{"models": models}
	})
}
