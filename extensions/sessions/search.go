package sessions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/extensions/sessions/index"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

// SearchTool is the full name of the tool that searches.
const SearchTool = ID + "/search"

// MaxHits is how many hits one search returns at most.
const MaxHits = 100

const searchSchema = `{"type":"object","properties":{` +
	`"query":{"type":"string","minLength":1,"maxLength":1000,` +
	`"description":"words in any form; \"words in quotes\" follow one another; remin* is any word that begins so"},` +
	`"agent":{"type":"string"},"channel":{"type":"string","description":"id"},` +
	`"session_id":{"type":"string"},"limit":{"type":"integer","minimum":1,"maximum":100},` +
	`"before":{"type":"string","description":"of an earlier result: older ones"},` +
	`"marks":{"type":"boolean"}},"required":["query"],"additionalProperties":false}`

// Found is the result of a search.
type Found struct {
	Hits []Hit `json:"hits"` // the newest first
	// Before asks for older ones; empty: there are none.
	Before string `json:"before,omitempty"`
}

// Hit is a text that was found.
type Hit struct {
	Session string `json:"session_id"`
	Seq     int64  `json:"seq"` // of the row
	At      string `json:"at"`  // RFC 3339
	Agent   string `json:"agent"`
	Channel string `json:"channel,omitempty"` // its name
	Name    string `json:"name"`              // of the session, in words
	Group   bool   `json:"group,omitempty"`
	Own     bool   `json:"own,omitempty"`  // the session that asks
	Kind    string `json:"kind"`           // input, answer
	From    string `json:"from,omitempty"` // of an input: its sender
	Text    string `json:"text"`           // the part that was found, on one line
	// Marks are the words that were searched for, as byte offsets in Text, if asked for.
	Marks [][2]int `json:"marks,omitempty"`
}

func (r *reader) search(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
	args := struct {
		Query   string
		Agent   string
		Channel string
		Session string `json:"session_id"`
		Limit   int
		Before  string
		Marks   bool
	}{Limit: 10}
	if err := c.Decode(&args); err != nil {
		return sdk.ToolResult{}, err
	}
	q := index.Query{Words: args.Query, Agent: args.Agent, Channel: args.Channel, Session: args.Session}
	if args.Before != "" {
		var err error
		if q.Before, err = strconv.ParseInt(args.Before, 10, 64); err != nil || q.Before <= 0 {
			return sdk.ToolResult{}, fmt.Errorf("%w: before is %q: give that of an earlier result",
				contract.ErrInvalid, args.Before)
		}
	}
	if c.Group && q.Session == "" { // others can read this: nothing from elsewhere
		q.Session = c.Session
	}
	names, err := r.channelNames(ctx)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	s := search{reader: r, call: c, words: args.Query, limit: min(args.Limit, MaxHits), marks: args.Marks,
		channels: names, sessions: map[string]*kernelv1.Session{}, out: Found{Hits: []Hit{}}}
	if err := r.finder.use(ctx, func(x *index.Index) error { return s.run(ctx, x, q) }); err != nil {
		return sdk.ToolResult{}, fmt.Errorf("search the conversations: %w", err)
	}
	return sdk.JSON(s.out)
}

// search is one search.
type search struct {
	*reader
	call     sdk.ToolCall
	words    string
	limit    int
	marks    bool
	channels map[string]string
	sessions map[string]*kernelv1.Session // nil: not for the caller, or deleted
	out      Found
}

func (s *search) run(ctx context.Context, x *index.Index, q index.Query) error {
	last := int64(0)
	return x.Find(ctx, q, func(h index.Hit) (bool, error) {
		of, err := s.session(ctx, h.Session)
		if err != nil || of == nil {
			return true, err
		}
		if len(s.out.Hits) == s.limit {
			s.out.Before = strconv.FormatInt(last, 10)
			return false, nil
		}
		if err := s.add(ctx, x, h, of); err != nil {
			return false, err
		}
		last = h.ID
		return true, nil
	})
}

// session returns a session that the caller may read; nil: none. The kernel decides.
func (s *search) session(ctx context.Context, id string) (*kernelv1.Session, error) {
	if of, ok := s.sessions[id]; ok {
		return of, nil
	}
	found, err := s.reader.sessions.List(ctx, &kernelv1.ListSessionsRequest{Lane: sdk.LaneOf(ctx), Session: id})
	err = contract.FromStatus(err)
	var of *kernelv1.Session
	switch {
	case errors.Is(err, contract.ErrNotFound), errors.Is(err, contract.ErrDenied):
	case err != nil:
		return nil, err
	case len(found.GetSessions()) > 0:
		of = found.GetSessions()[0]
	}
	s.sessions[id] = of
	return of, nil
}

// add adds a hit with its text, which is the kernel's.
func (s *search) add(ctx context.Context, x *index.Index, h index.Hit, of *kernelv1.Session) error {
	one := &adminv1.HistoryRequest{Session: h.Session, Before: h.Seq + 1, Limit: 1}
	rows, err := admin.History(ctx, s.finder.read, one)
	if errors.Is(err, contract.ErrNotFound) { // deleted meanwhile
		return nil
	}
	if err != nil {
		return err
	}
	if len(rows) == 0 || rows[0].GetSeq() != h.Seq {
		return nil
	}
	row := rows[0].Entry
	snippet := x.Snippet(said(row), s.words)
	_, name := nameOf(of)
	hit := Hit{
		Session: h.Session, Seq: h.Seq, At: s.time(s.call, row.GetCreatedAtUs()), Agent: of.GetAgent(),
		Channel: s.channels[of.GetChannel()], Name: name, Group: of.GetGroup(), Own: h.Session == s.call.Session,
		Kind: row.GetKind(), From: row.GetSender(), Text: snippet.Text,
	}
	if s.marks {
		hit.Marks = slices.Clone(snippet.Matches)
	}
	s.out.Hits = append(s.out.Hits, hit)
	return nil
}
