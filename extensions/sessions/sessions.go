// Package sessions is the extension by which agents read sessions, and people and agents
// search them: which there are, and what was said in them.
//
// Its tools are private: an agent has them only if its uses_tools names them. Asked
// from a conversation that others can read, they see that conversation alone, and
// elsewhere those of the person who asks; the kernel decides that for each session. The
// owner's command line sees all. No address of a chat or a person is ever part of an answer.
//
// # The index
//
// A search reads what was said since the last one into an index (package index) in the data
// directory, and closes it a minute later. Nothing is read before the first search. The
// index may be deleted at any time. Deleted sessions are never found; their words leave
// the file within an hour.
package sessions

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

// ID is the extension's id.
const ID = "sessions"

// New is the extension.
func New() sdk.Extension {
	r := &reader{}
	return sdk.Extension{
		ID: ID,
		Start: func(_ context.Context, k *sdk.Kernel) error {
			r.sessions, r.channels, r.location = k.Services().Sessions, k, k.Location()
			r.finder = newFinder(admin.Reader(k.Services().Conn), k.DataDir(), k.Log())
			return nil
		},
		Run: func(ctx context.Context, _ *sdk.Kernel) error {
			r.finder.sweep(ctx)
			return nil
		},
		Stop: func(ctx context.Context) error { return r.finder.stop(ctx) },
		Tools: []sdk.Tool{
			{
				Name:        "list_sessions",
				ReadOnly:    true,
				Private:     true,
				Description: "List sessions (conversations, jobs, tasks), the most recently active first.",
				Schema: []byte(
					`{"type":"object","properties":{"agent":{"type":"string","description":"only those of this agent"},` +
						`"limit":{"type":"integer","minimum":1,"maximum":100}},"additionalProperties":false}`,
				),
				Call: r.list,
			},
			{
				Name:     "get_session",
				ReadOnly: true,
				Private:  true,
				Description: "Read a session and the newest rows of its transcript. " +
					"For older rows call it again with the result's \"before\".",
				Schema: []byte(
					`{"type":"object","properties":{"session_id":{"type":"string","description":"id from list_sessions"},` +
						`"limit":{"type":"integer","minimum":1,"maximum":100,"description":"rows"},` +
						`"before":{"type":"integer","minimum":1}},` +
						`"required":["session_id"],"additionalProperties":false}`,
				),
				Call: r.get,
			},
			{
				Name:        "search",
				ReadOnly:    true,
				Private:     true,
				Description: "Search all that was said in conversations (messages, chats, history), the newest first.",
				Schema:      []byte(searchSchema),
				Call:        r.search,
			},
		},
	}
}

// reader reads sessions through the kernel.
type reader struct {
	sessions kernelv1.SessionsClient
	channels interface {
		Channels(ctx context.Context) ([]*kernelv1.Channel, error)
	}
	location *time.Location
	finder   *finder
}

// row is a session as an agent sees it.
type row struct {
	ID        string `json:"id"`
	Agent     string `json:"agent"`
	Kind      string `json:"kind"` // chat, job, task, link, other
	Name      string `json:"name"` // in words
	Channel   string `json:"channel,omitempty"`
	Group     bool   `json:"group,omitempty"`
	State     string `json:"state"` // idle, waiting, running
	CreatedAt string `json:"created_at"`
	ActiveAt  string `json:"active_at"`
	Rows      int64  `json:"rows"`
	Own       bool   `json:"own,omitempty"` // the session that asks
}

func (r *reader) list(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
	args := struct {
		Agent string
		Limit int32
	}{Limit: 20}
	if err := json.Unmarshal(c.Arguments, &args); err != nil {
		return sdk.ToolResult{}, err
	}
	rows, err := r.rows(ctx, c, &kernelv1.ListSessionsRequest{Lane: sdk.LaneOf(ctx), Agent: args.Agent, Limit: args.Limit})
	if err != nil {
		return sdk.ToolResult{}, err
	}
	return sdk.JSON(map[string]any{"sessions": rows})
}

func (r *reader) rows(ctx context.Context, c sdk.ToolCall, request *kernelv1.ListSessionsRequest) ([]row, error) {
	found, err := r.sessions.List(ctx, request)
	if err != nil {
		return nil, contract.FromStatus(err)
	}
	names, err := r.channelNames(ctx)
	if err != nil {
		return nil, err
	}
	rows := make([]row, 0, len(found.GetSessions()))
	for _, s := range found.GetSessions() {
		kind, name := nameOf(s)
		rows = append(rows, row{
			ID:        s.GetId(),
			Agent:     s.GetAgent(),
			Kind:      kind,
			Name:      name,
			Channel:   names[s.GetChannel()],
			Group:     s.GetGroup(),
			State:     s.GetState(),
			CreatedAt: r.time(c, s.GetCreatedAtUs()),
			ActiveAt:  r.time(c, s.GetActiveAtUs()),
			Rows:      s.GetHistorySeq(),
			Own:       s.GetId() == c.Session,
		})
	}
	return rows, nil
}

// channelNames returns the names of the channels by their ids.
func (r *reader) channelNames(ctx context.Context) (map[string]string, error) {
	channels, err := r.channels.Channels(ctx)
	names := map[string]string{}
	for _, channel := range channels {
		names[channel.GetId()] = channel.GetName()
	}
	return names, err
}

// time formats a time in the zone of the person for whom a call is made.
func (r *reader) time(c sdk.ToolCall, us int64) string {
	return time.UnixMicro(us).In(cmp.Or(c.Location, r.location)).Format(time.RFC3339)
}

// nameOf is the kind of a session, which its key begins with, and its name in words.
func nameOf(s *kernelv1.Session) (kind, name string) {
	kind, _, found := strings.Cut(s.GetKey(), ":")
	switch {
	case s.GetChannel() != "":
		return "chat", words.Sprintf("conversation %s", s.GetId())
	case !found:
		kind = "other"
	}
	return kind, cmp.Or(s.GetTitle(), s.GetKey())
}
