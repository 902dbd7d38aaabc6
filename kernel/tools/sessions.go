package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/naming"
)

// What of a transcript reaches a model at once.
const (
	pageRows   = 30
	pageBytes  = contract.MaxToolResult - 4<<10
	rowBytes   = 4 << 10 // of one text
	aboutBytes = 500     // of a tool's arguments or result
)

// sessionRow is a session as an agent sees it: without any address.
type sessionRow struct {
	ID        string   `json:"id"`
	Agent     string   `json:"agent"` // the only one that was ever in it
	Kind      string   `json:"kind"`  // chat, job, task, link, other
	Name      string   `json:"name"`  // in words
	Channel   string   `json:"channel,omitempty"`
	Group     bool     `json:"group,omitempty"`
	State     string   `json:"state"` // idle, waiting, running
	CreatedAt string   `json:"created_at"`
	ActiveAt  string   `json:"active_at"`
	Memory    []string `json:"memory"` // scopes of its agent
	Rows      int64    `json:"rows"`
	Own       bool     `json:"own,omitempty"` // the one that asks
}

type transcriptRow struct {
	Seq     int64     `json:"seq"`
	At      string    `json:"at"`
	Kind    string    `json:"kind"`
	Of      string    `json:"input_kind,omitempty"`
	From    string    `json:"from,omitempty"`
	Text    string    `json:"text,omitempty"`
	Calls   []callRow `json:"calls,omitempty"`
	CallID  string    `json:"call_id,omitempty"`
	IsError bool      `json:"is_error,omitempty"`
}

type callRow struct {
	ID        string `json:"id"`
	Tool      string `json:"tool"`
	Arguments string `json:"arguments,omitempty"`
}

// asker is who reads sessions. Where others read along, it sees its own alone.
type asker struct {
	*Runner
	now  *directory.Snapshot
	own  int64 // 0: it has none
	only bool
}

func (r *Runner) asker(j journal.Reader, l *bus.Lease) (asker, error) {
	a := asker{Runner: r, now: r.Directory.Current()}
	if l == nil || l.Session == 0 {
		return a, nil
	}
	s, err := j.Session(l.Session)
	a.own, a.only = l.Session, s == nil || s.Group
	return a, err
}

// SeesOtherSessions says whether who holds a lease may read other sessions than
// its own: if its agent may list them, and nobody else reads along.
func (r *Runner) SeesOtherSessions(j journal.Reader, l *bus.Lease) (bool, error) {
	a, err := r.asker(j, l)
	t := a.now.Tool("core/list_sessions")
	return !a.only && t != nil && a.now.MayUse(l.Agent, t), err
}

func (a asker) describe(j journal.Reader, s *journal.Session) (sessionRow, error) {
	row := sessionRow{
		ID: journal.SessionID(s.ID), Agent: s.Agent, Kind: sessionKind(s.Key), Group: s.Group, CreatedAt: a.time(s.CreatedAt), ActiveAt: a.time(s.ActiveAt),
		Memory: []string{}, Rows: s.HistorySeq, Own: s.ID == a.own,
	}
	if agent := a.now.Agent(s.Agent); agent != nil {
		row.Memory = append(row.Memory, agent.Spec.GetMemory()...)
	}
	name, err := naming.Session(j, s, naming.Model)
	if err != nil {
		return row, err
	}
	state, err := a.Sessions.State(j, a.Bus, s)
	if err != nil {
		return row, err
	}
	row.Name = name
	row.State = state.Name
	if s.Conversation == 0 {
		return row, nil
	}
	c, err := j.Conversation(s.Conversation)
	if err == nil && c != nil {
		row.Channel = c.Channel
		if channel := a.now.Channel(c.Channel); channel != nil {
			row.Channel = channel.Name
		}
	}
	return row, err
}

func (a asker) time(us int64) string {
	return time.UnixMicro(us).In(a.now.Location).Format(time.RFC3339)
}

// sessionKind is what a session is for, by its key.
func sessionKind(key string) string {
	switch kind, _, _ := strings.Cut(key, ":"); kind {
	case "chan":
		return "chat"
	case "job", "task", "link":
		return kind
	}
	return "other"
}

func listSessions(ctx context.Context, r *Runner, l *bus.Lease, raw []byte) (any, error) {
	args := struct {
		Agent string
		Limit int
	}{Limit: 20}
	if err := json.Unmarshal(raw, &args); err != nil {
		return nil, err
	}
	rows := []sessionRow{}
	return map[string]any{"sessions": &rows}, r.Bus.View(ctx, func(j journal.Reader) error {
		rows = rows[:0]
		a, err := r.asker(j, l)
		if err != nil {
			return err
		}
		var sessions []journal.Session
		if a.only {
			s, err := j.Session(a.own)
			if err != nil {
				return err
			}
			if s != nil && (args.Agent == "" || args.Agent == s.Agent) {
				sessions = append(sessions, *s)
			}
		} else if sessions, err = j.Sessions(journal.SessionFilter{Agent: args.Agent, Limit: args.Limit}); err != nil {
			return err
		}
		for i := range sessions {
			row, err := a.describe(j, &sessions[i])
			if err != nil {
				return err
			}
			rows = append(rows, row)
		}
		return nil
	})
}

// page is a session with a part of its transcript.
type page struct {
	sessionRow
	Transcript []transcriptRow `json:"transcript"` // oldest first
	// Before asks for what stands in front of this page; 0: nothing does.
	Before int64 `json:"before,omitempty"`
}

func getSession(ctx context.Context, r *Runner, l *bus.Lease, raw []byte) (any, error) {
	args := struct {
		Session string `json:"session_id"`
		Limit   int
		Before  int64
	}{Limit: pageRows}
	if err := json.Unmarshal(raw, &args); err != nil {
		return nil, err
	}
	var p page
	return &p, r.Bus.View(ctx, func(j journal.Reader) error {
		a, err := r.asker(j, l)
		if err != nil {
			return err
		}
		id := journal.ParseSessionID(args.Session)
		if a.only && id != a.own {
			return fmt.Errorf("%w: others read along here: only this conversation itself (%s) can be read", contract.ErrDenied, journal.SessionID(a.own))
		}
		s, err := j.Session(id)
		if err != nil {
			return err
		}
		if s == nil {
			return fmt.Errorf("%w: there is no session %q", contract.ErrNotFound, args.Session)
		}
		if p.sessionRow, err = a.describe(j, s); err != nil {
			return err
		}
		entries, err := j.HistoryBefore(s.ID, args.Before, args.Limit)
		if err != nil {
			return err
		}
		p.Transcript, p.Before = a.transcript(entries)
		return nil
	})
}

// transcript is as many of the newest rows as fit, and where those in front of
// them end.
func (a asker) transcript(entries []*busv1.Entry) (rows []transcriptRow, before int64) {
	rows = []transcriptRow{}
	size := 0
	for _, e := range slices.Backward(entries) {
		row := transcriptRow{
			Seq: e.GetSeq(), At: a.time(e.GetCreatedAtUs()), Kind: e.GetKind(), Of: e.GetInputKind(), From: e.GetSender(),
			Text: shortened(e.GetText(), rowBytes), CallID: e.GetCallId(), IsError: e.GetIsError(),
		}
		if e.GetKind() == contract.EntryResult {
			row.Text = shortened(e.GetText(), aboutBytes)
		}
		for _, c := range e.GetCalls() {
			row.Calls = append(row.Calls, callRow{ID: c.GetCallId(), Tool: c.GetName(), Arguments: shortened(string(c.GetArguments()), aboutBytes)})
		}
		b, _ := json.Marshal(row) // strings and numbers
		if size += len(b); size > pageBytes && len(rows) > 0 {
			break
		}
		rows = append(rows, row)
	}
	slices.Reverse(rows)
	if len(rows) > 0 && rows[0].Seq > 1 {
		before = rows[0].Seq
	}
	return rows, before
}

func shortened(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + fmt.Sprintf(" [cut: %d bytes in all]", len(s))
}
