package kernel

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/control"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/naming"
	"github.com/switchboard-run/switchboard/kernel/router"
)

// Sessions implements control.Kernel.
func (a admin) Sessions(ctx context.Context, q control.SessionQuery) ([]control.Session, error) {
	sessions := []control.Session{}
	return sessions, a.bus.View(ctx, func(r journal.Reader) error {
		stored, err := r.Sessions(journal.SessionFilter{Agent: q.Agent, Limit: q.Limit})
		for i := range stored {
			s, err := a.showSession(r, &stored[i])
			if err != nil {
				return err
			}
			newest, _, err := r.History(stored[i].ID, 0, 1)
			if err != nil {
				return err
			}
			if len(newest) > 0 {
				s.Last = beginning(newest[len(newest)-1].GetText())
			}
			sessions = append(sessions, s)
		}
		return err
	})
}

func beginning(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > 80 {
		return string(r[:79]) + "…"
	}
	return s
}

func (a admin) showSession(r journal.Reader, s *journal.Session) (control.Session, error) {
	x := control.Session{
		ID: journal.SessionID(s.ID), Agent: s.Agent, Key: s.Key, Group: s.Group, Rows: s.HistorySeq, Memory: []string{},
		CreatedAt: time.UnixMicro(s.CreatedAt), ActiveAt: time.UnixMicro(s.ActiveAt),
	}
	if agent := a.directory.Current().Agent(s.Agent); agent != nil {
		x.Memory = append(x.Memory, agent.Spec.GetMemory()...)
	}
	var err error
	if x.Name, err = naming.Session(r, s, naming.Owner); err != nil {
		return x, err
	}
	state, err := a.sessions.State(r, a.bus, s)
	if err != nil {
		return x, err
	}
	x.State, x.Turns, x.Waiting = state.Name, state.Turns, state.Waiting
	if s.Conversation == 0 {
		return x, nil
	}
	c, err := r.Conversation(s.Conversation)
	if err == nil && c != nil {
		x.Channel, x.Conversation, x.Thread = c.Channel, c.Address, c.Thread
		x.Ended = s.Key != router.ChatKey(c)
	}
	return x, err
}

func readSession(r journal.Reader, id string) (*journal.Session, error) {
	s, err := r.Session(journal.ParseSessionID(id))
	if err == nil && s == nil {
		err = fmt.Errorf("%w: there is no session %q: `switchboard sessions list` shows those there are", contract.ErrNotFound, id)
	}
	return s, err
}

// Session implements control.Kernel.
func (a admin) Session(ctx context.Context, id string) (x control.Session, err error) {
	return x, a.bus.View(ctx, func(r journal.Reader) error {
		s, err := readSession(r, id)
		if err == nil {
			x, err = a.showSession(r, s)
		}
		return err
	})
}

// Transcript implements control.Kernel.
func (a admin) Transcript(ctx context.Context, id string) (control.Transcript, error) {
	t := control.Transcript{Entries: []control.Entry{}}
	return t, a.bus.View(ctx, func(r journal.Reader) error {
		s, err := readSession(r, id)
		if err != nil {
			return err
		}
		if t.Session, err = a.showSession(r, s); err != nil {
			return err
		}
		rows, _, err := r.History(s.ID, 0, math.MaxInt64)
		for _, row := range rows {
			t.Entries = append(t.Entries, entry(row))
		}
		return err
	})
}

func entry(row *busv1.Entry) control.Entry {
	e := control.Entry{
		Seq: row.GetSeq(), At: time.UnixMicro(row.GetCreatedAtUs()), Kind: row.GetKind(), Turn: row.GetTurn(), Input: row.GetInput(),
		Of: row.GetInputKind(), Sender: row.GetSender(), Model: row.GetModel(), Text: row.GetText(), CallID: row.GetCallId(), IsError: row.GetIsError(),
	}
	for _, c := range row.GetCalls() {
		e.Calls = append(e.Calls, control.Call{ID: c.GetCallId(), Name: c.GetName(), Arguments: string(c.GetArguments())})
	}
	return e
}

// DeleteSession implements control.Kernel.
func (a admin) DeleteSession(_ context.Context, id string) error {
	return a.bus.Do(func(tx *bus.Tx) error {
		s, err := readSession(tx, id)
		if err != nil {
			return err
		}
		return a.sessions.Delete(tx, s.ID)
	})
}
