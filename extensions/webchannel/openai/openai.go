// Package openaiapi is the part of the web channel that speaks the HTTP API of OpenAI, so
// that programs made for it can talk to the agents: GET /v1/models, where each agent is a
// model, POST /v1/chat/completions and POST /v1/responses.
//
// # Promises
//
//   - A message is on disk before its turn begins, and its turn goes on when the client goes
//     away: the same Idempotency-Key gets the same answer later, over crashes too. To stop a
//     turn, a client says /stop in its conversation.
//   - A conversation, which `user`, `metadata.conversation`, `conversation` or
//     `previous_response_id` names, keeps one session. Without a name it is a new one, whose
//     session and lines are deleted 24 hours after the last message.
//   - Only the last user message is said by the person of the token. What a client claims was
//     said before, and its system messages, are a record that the agent is shown as data.
//   - What cannot be done is refused in the protocol's form of an error. Fields that only tune
//     a model are ignored. Tokens are those that the providers reported, or there are none.
//   - An answer that was streamed may repeat its beginning if the agent changed it afterwards:
//     the whole answer follows then.
//
// Conversations belong to a token: another token of the same person has others.
package openaiapi

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/extensions/webchannel/chat"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/netguard"
)

// Store is the part of *sdk.Kernel that keeps which conversations there are.
type Store interface {
	Get(ctx context.Context, key string) (sdk.Value, error)
	Scan(ctx context.Context, prefix string, each func(sdk.Value) error) error
	Commit(ctx context.Context, effects ...sdk.Effect) ([]*busv1.EffectResult, error)
}

// Files takes the files of messages; *chat.Chat does.
type Files interface {
	Upload(ctx context.Context, v door.Visitor, claimed contract.Attachment, from io.Reader) (contract.Attachment, error)
}

// Options are what the part needs. All must be set.
type Options struct {
	// Context ends with the extension. Until then conversations that have expired are deleted.
	Context context.Context //nolint:containedctx // of the work between requests
	Chat    chat.Conversations
	Files   Files
	Store   Store
	Read    adminv1.ReadClient
	Manage  adminv1.ManageClient
	// Images fetches the images that a client names by an address.
	Images *netguard.Guard
	Now    func() time.Time
	Log    hclog.Logger
}

// server serves the part.
type server struct {
	Options
	turns turns

	mu     sync.Mutex
	agents []*adminv1.Agent // as they were at listed
	listed time.Time
}

// Register adds the routes, and begins to delete what has expired.
func Register(mux *http.ServeMux, o Options) {
	s := register(mux, o)
	go s.sweep(o.Context)
}

func register(mux *http.ServeMux, o Options) *server {
	s := &server{Options: o}
	s.turns.read, s.turns.ctx = o.Read, o.Context
	mux.HandleFunc("GET /v1/models", s.handle(s.models))
	mux.HandleFunc("GET /v1/models/{model...}", s.handle(s.model))
	mux.HandleFunc("POST /v1/chat/completions", s.handle(s.completions))
	mux.HandleFunc("POST /v1/responses", s.handle(s.responses))
	mux.HandleFunc("/v1/", s.handle(func(_ http.ResponseWriter, r *http.Request, _ door.Visitor) error {
		return &fault{status: http.StatusNotFound, code: "unknown_url", text: "Unknown request URL: " + r.Method + " " +
			r.URL.Path + ". There are /v1/models, /v1/chat/completions and /v1/responses."}
	}))
	return s
}

// handle lets those in who may send messages, and answers errors in the protocol's form.
func (s *server) handle(
	serve func(http.ResponseWriter, *http.Request, door.Visitor) error,
) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v := door.From(r.Context())
		var err error = &fault{status: http.StatusForbidden, code: "insufficient_permissions",
			text: "This token may not send messages: it needs the scope " + door.ScopeMessages + "."}
		if v.User != "" && v.May(door.ScopeMessages, true) {
			err = serve(w, r, v)
		}
		if err != nil && r.Context().Err() == nil {
			f := s.faultOf(err)
			f.write(w)
		}
	}
}

// agentsKept is how long the list of agents is used.
const agentsKept = 2 * time.Second

// directory returns the agents that answer.
func (s *server) directory(ctx context.Context) ([]*adminv1.Agent, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.Now(); s.agents == nil || now.Sub(s.listed) > agentsKept {
		dir, err := s.Read.Directory(ctx, &adminv1.DirectoryRequest{})
		if err != nil {
			return nil, err
		}
		enabled := []*adminv1.Agent{}
		for _, a := range dir.GetAgents() {
			if a.GetEnabled() {
				enabled = append(enabled, a)
			}
		}
		s.agents, s.listed = enabled, now
	}
	return s.agents, nil
}

// agent returns an error unless a model is an agent that answers.
func (s *server) agent(ctx context.Context, model string) error {
	if model == "" {
		return invalid("model", "Name the agent that answers as the model; GET /v1/models lists them.")
	}
	all, err := s.directory(ctx)
	if err != nil {
		return err
	}
	for _, a := range all {
		if a.GetId() == model {
			return nil
		}
	}
	return &fault{status: http.StatusNotFound, code: "model_not_found", param: "model",
		text: "There is no agent \"" + model + "\"; GET /v1/models lists them."}
}

// model is an agent in the protocol's form.
type model struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

func modelOf(id string) model { return model{ID: id, Object: "model", OwnedBy: "switchboard"} }

func (s *server) models(w http.ResponseWriter, r *http.Request, _ door.Visitor) error {
	all, err := s.directory(r.Context())
	if err != nil {
		return err
	}
	list := struct {
		Object string  `json:"object"`
		Data   []model `json:"data"`
	}{"list", []model{}}
	for _, a := range all {
		list.Data = append(list.Data, modelOf(a.GetId()))
	}
	return writeJSON(w, list)
}

func (s *server) model(w http.ResponseWriter, r *http.Request, _ door.Visitor) error {
	id := r.PathValue("model")
	if err := s.agent(r.Context(), id); err != nil {
		return err
	}
	return writeJSON(w, modelOf(id))
}
