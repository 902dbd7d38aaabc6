package openai

import (
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/modelapi"
)

const testKey = "sk-test-0123456789abcdefghij"

// heard is the result of one completion.
type heard struct {
	text   string
	calls  []*busv1.Call
	finish string
	usage  *sdk.Usage
	model  string // of the first delta
	deltas int
}

func (h *heard) emit(d *sdk.Delta) error {
	if h.deltas == 0 {
		h.model = d.GetModel()
	}
	h.deltas++
	h.text += d.GetText()
	if d.GetCall() != nil {
		h.calls = append(h.calls, d.GetCall())
	}
	if d.GetUsage() != nil {
		h.usage = d.GetUsage()
	}
	if d.GetFinish() != "" {
		h.finish = d.GetFinish()
	}
	return nil
}

func ask(text string) *sdk.CompleteRequest {
	return &sdk.CompleteRequest{Model: "gpt-test", Messages: []*extensionv1.Message{{Role: "user", Content: text}}}
}

// connect returns a client of the server.
func connect(tb testing.TB, address string) *modelapi.Server {
	tb.Helper()
	none := 0
	s, err := modelapi.NewServer(Kind(), ID, modelapi.Config{BaseURL: address, Key: KeyName, Retries: &none}, testKey)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Close)
	return s
}

func complete(t *testing.T, s *modelapi.Server, r *sdk.CompleteRequest) (heard, error) {
	t.Helper()
	var h heard
	err := s.Complete(t.Context(), r, h.emit)
	if err != nil && strings.Contains(err.Error(), testKey) {
		t.Errorf("the error holds the key: %v", err)
	}
	return h, err
}
