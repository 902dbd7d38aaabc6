package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/mcpserver/clients"
	"github.com/switchboard-run/switchboard/sdk/sdktest"
)

//nolint:paralleltest // the suite counts goroutines
func TestConformance(t *testing.T) {
	sdktest.Conformance(t, New, sdktest.Options{Manifest: "../../manifests/mcp_server.yaml"})
}

// store is the extension's own store.
type store map[string]sdk.Value

func (s store) Get(_ context.Context, key string) (sdk.Value, error) { return s[key], nil }

func (s store) Scan(_ context.Context, prefix string, each func(sdk.Value) error) error {
	for key, v := range s {
		if strings.HasPrefix(key, prefix) {
			if err := each(v); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s store) Ask(context.Context, string, any) (sdk.ToolResult, error) {
	return sdk.ToolResult{}, contract.ErrNotFound
}

// commit applies what effects do to the store, and returns what they publish.
func (s store) commit(t *testing.T, effects sdk.Effects) (published []string) {
	t.Helper()
	for _, e := range effects {
		pb, err := e.Proto()
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case pb.GetPut() != nil:
			p := pb.GetPut()
			if p.Version != nil && p.GetVersion() != s[p.GetKey()].Version {
				t.Fatalf("conflict at %s", p.GetKey())
			}
			s[p.GetKey()] = sdk.Value{Key: p.GetKey(), Value: p.GetValue(), Version: s[p.GetKey()].Version + 1}
		case pb.GetDelete() != nil:
			delete(s, pb.GetDelete().GetKey())
		case pb.GetPublish() != nil:
			published = append(published, string(pb.GetPublish().GetPayload()))
		}
	}
	return published
}

func TestAQuestionIsAskedOnceAndItsAnswerIsKept(t *testing.T) {
	t.Parallel()
	kept, now := store{}, time.Unix(1e9, 0)
	s := &server{
		k: kept, log: hclog.NewNullLogger(), now: func() time.Time { return now },
		allowed: map[string]clients.Client{"claude": {Name: "claude", Tools: []string{"memory/*"}}},
	}
	ask := func(arguments string) (clients.Question, []string) {
		t.Helper()
		r, err := s.ask(t.Context(), sdk.ToolCall{Arguments: json.RawMessage(arguments)})
		if err != nil {
			t.Fatal(err)
		}
		var q clients.Question
		if err := json.Unmarshal([]byte(r.Content), &q); err != nil {
			t.Fatal(err)
		}
		return q, kept.commit(t, r.Effects)
	}
	const milk = `{"client":"claude","question":"Which milk?"}`
	first, published := ask(milk)
	if len(published) != 1 || !strings.Contains(published[0], "claude (MCP): Which milk?") {
		t.Fatalf("published %q", published)
	}
	if again, published := ask(milk); again.ID != first.ID || len(published) != 0 {
		t.Errorf("asked again: %+v, %q", again, published)
	}
	if other, published := ask(`{"client":"claude","question":"Which tea?"}`); other.ID == first.ID || len(published) != 1 {
		t.Errorf("another question: %+v, %q", other, published)
	}
	answer := func(id string) {
		t.Helper()
		payload, _ := json.Marshal(contract.UserAnswer{Ref: id, Outcome: contract.AskAnswered, Answer: "oat", By: "Anna"})
		effects, err := s.handle(t.Context(), sdk.Event{Topic: clients.TopicAnswered, Payload: payload})
		if err != nil {
			t.Fatal(err)
		}
		kept.commit(t, effects)
	}
	answer(first.ID)
	answer(first.ID) // a second delivery changes nothing
	answer("none")
	if again, published := ask(milk); again.Answer != "oat" || again.By != "Anna" || len(published) != 0 {
		t.Errorf("answered: %+v, %q", again, published)
	}
	r, err := s.fetch(t.Context(), sdk.ToolCall{Arguments: json.RawMessage(`{"id":"` + first.ID + `"}`)})
	if err != nil || !strings.Contains(r.Content, "oat") {
		t.Fatalf("fetched %s, %v", r.Content, err)
	}
	kept.commit(t, r.Effects)
	second, published := ask(milk)
	if second.ID == first.ID || len(published) != 1 {
		t.Errorf("after its answer was fetched: %+v, %q", second, published)
	}
	// The client sees the answer before it is stored.
	r, err = s.fetch(t.Context(), sdk.ToolCall{Arguments: json.RawMessage(`{"id":"` + second.ID + `"}`)})
	if err != nil {
		t.Fatal(err)
	}
	kept.commit(t, r.Effects)
	answer(second.ID)
	if second, published = ask(milk); second.Outcome != "" || len(published) != 1 {
		t.Errorf("after an early fetch: %+v, %q", second, published)
	}
	answer(second.ID)
	now = now.Add(keepAnswer)
	if third, published := ask(milk); third.ID == second.ID || len(published) != 1 {
		t.Errorf("a day later: %+v, %q", third, published)
	}
	if _, err := s.ask(t.Context(), sdk.ToolCall{Arguments: json.RawMessage(`{"client":"zed","question":"?"}`)}); !errors.Is(
		err, contract.ErrDenied) {
		t.Errorf("an unknown client: %v", err)
	}
	now = now.Add(4 * keepAnswer)
	ask(`{"client":"claude","question":"Which cup?"}`)
	if len(kept) != 2 {
		t.Errorf("%d rows are left", len(kept))
	}
}

func TestACallIsRecordedIfItIsGranted(t *testing.T) {
	t.Parallel()
	s := &server{log: hclog.NewNullLogger(), allowed: map[string]clients.Client{
		"claude": {Name: "claude", Tools: []string{"memory/*", "tasks/list"}},
	}}
	for call, granted := range map[string]bool{
		`{"client":"claude","tool":"memory/recall"}`:                       true,
		`{"client":"claude","tool":"tasks/list","private":true}`:           true,
		`{"client":"claude","tool":"memory/forget_all","private":true}`:    false,
		`{"client":"claude","tool":"tasks/cancel","private":true}`:         false,
		`{"client":"claude","tool":"memoryx/recall"}`:                      false,
		`{"client":"nobody","tool":"memory/recall"}`:                       false,
		`{"client":"claude","tool":"memory/recall","arguments":"{\"a\":"}`: true,
	} {
		r, err := s.call(t.Context(), sdk.ToolCall{Arguments: json.RawMessage(call)})
		if granted != (err == nil && len(r.Effects) == 1) || err != nil && !errors.Is(err, contract.ErrDenied) {
			t.Errorf("%s: %+v, %v", call, r, err)
		}
	}
}
