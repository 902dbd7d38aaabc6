package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

func testSessions(t *testing.T, open Open) {
	f := start(t, open)
	all := make([]journal.Session, 4)
	f.do(func(tx journal.Tx) {
		for i := range all {
			all[i] = journal.Session{Agent: []string{"a", "b"}[i%2], Key: fmt.Sprint("chan:", i), CreatedAt: 1,
				ActiveAt: int64(i), Chain: fmt.Sprint("work ", i),
				Title: fmt.Sprint("title ", i), Within: int64(i)}
			must(tx.PutSession(&all[i]))
		}
	})
	s := &all[1]
	s.OutboundKind, s.OutboundTarget, s.Conversation, s.Group = 2, "target", 5, true
	s.HistorySeq, s.Stack, s.ActiveAt, s.UserAt, s.Idle = 9, []int64{3, 1 << 40}, 77, 1<<50+1, []string{"one", "two"}
	s.Title, s.Within = "another title", 3
	f.do(func(tx journal.Tx) { must(tx.PutSession(s)) })
	if err := journal.Do(t.Context(), f, func(tx journal.Tx) error {
		return tx.PutSession(&journal.Session{Agent: "b", Key: "chan:1"})
	}); err == nil {
		t.Error("there are two sessions with one agent and key")
	}
	f.reopen()
	f.view(func(r journal.Reader) {
		if diff := cmp.Diff(s, ok(r.Session(s.ID))); diff != "" {
			t.Errorf("the session by its id (-stored +read):\n%s", diff)
		}
		if diff := cmp.Diff(s, ok(r.SessionByKey("b", "chan:1"))); diff != "" {
			t.Errorf("the session by its key (-stored +read):\n%s", diff)
		}
		if other := ok(r.SessionByKey("a", "chan:1")); other != nil {
			t.Errorf("another agent's session is %+v", other)
		}
		if diff := cmp.Diff([]journal.Session{all[1], all[3]},
			ok(r.Sessions(journal.SessionFilter{Agent: "b"}))); diff != "" {
			t.Errorf("the sessions of an agent, most recently active first (-want +got):\n%s", diff)
		}
		if two := ok(r.Sessions(journal.SessionFilter{Limit: 2})); len(two) != 2 || two[0].ID != s.ID ||
			two[1].ID != all[3].ID {
			t.Errorf("the two most recently active sessions are %+v", two)
		}
	})
	last := all[3].ID
	f.do(func(tx journal.Tx) {
		must(tx.AppendHistory(last, []*busv1.Entry{{Seq: 1, Text: "x"}}))
		turn := journal.Turn{Session: last}
		must(tx.PutTurn(&turn))
		must(tx.PutCall(&journal.Call{Session: last, Turn: turn.ID}))
		must(tx.DeleteSession(last))
		if s := ok(tx.Session(last)); s != nil {
			t.Errorf("a deleted session is %+v", s)
		}
		rows, _, err := tx.History(last, 0, 1<<20)
		if must(err); len(rows) > 0 || ok(tx.Turn(turn.ID)) != nil || len(ok(tx.OpenCalls(turn.ID))) > 0 {
			t.Error("a deleted session leaves history, turns or calls")
		}
	})
	f.reopen()
	f.do(func(tx journal.Tx) {
		next := journal.Session{Agent: "a", Key: "new"}
		if must(tx.PutSession(&next)); next.ID <= last {
			t.Errorf("after session %d was deleted, a new one has id %d", last, next.ID)
		}
	})
}

// testSessionOfAnUpdate reads what the update itself has changed, and nothing that it
// did not store or that was rolled back.
func testSessionOfAnUpdate(t *testing.T, open Open) {
	f := start(t, open)
	var id int64
	f.do(func(tx journal.Tx) {
		s := &journal.Session{Agent: "a", Key: "k", Title: "first", Stack: []int64{1}}
		must(tx.PutSession(s))
		id = s.ID
	})
	var seen []string // of the last run of the update, which counts
	f.do(func(tx journal.Tx) {
		seen = nil
		look := func() {
			for _, s := range []*journal.Session{ok(tx.Session(id)), ok(tx.SessionByKey("a", "k"))} {
				seen = append(seen, fmt.Sprint(s.Title, s.Stack))
			}
		}
		s := ok(tx.Session(id))
		s.Title, s.Stack[0] = "never stored", 7
		look()
		s.Title = "second"
		must(tx.PutSession(s))
		s.Stack[0] = 8
		look()
		if err := tx.Part(func() error {
			s.Title = "of a part"
			must(tx.PutSession(s))
			look()
			return errRefused
		}); !errors.Is(err, errRefused) {
			t.Errorf("the part ended with %v", err)
		}
		look()
	})
	want := []string{
		"first[1]", "first[1]", "second[7]", "second[7]", "of a part[8]", "of a part[8]", "second[7]", "second[7]",
	}
	if !slices.Equal(seen, want) {
		t.Errorf("seen are %q, want %q", seen, want)
	}
	f.reopen()
	f.view(func(r journal.Reader) {
		if s := ok(r.Session(id)); s.Title != "second" {
			t.Errorf("stored is %+v", s)
		}
	})
}

// testHistory reads the newest complete rows that fit, and whether there are more.
func testHistory(t *testing.T, open Open) {
	f := start(t, open)
	rows := make([]*busv1.Entry, 10)
	size := make([]int64, 10)
	for i := range rows {
		rows[i] = &busv1.Entry{Seq: int64(i + 1), Kind: "input", Text: strings.Repeat("x", 100*(i+1)),
			Calls: []*busv1.Call{{Name: "n", Arguments: []byte{0xff}}}}
		size[i] = int64(proto.Size(rows[i]))
	}
	f.do(func(tx journal.Tx) {
		must(tx.AppendHistory(1, rows[:4]))
		must(tx.AppendHistory(2, []*busv1.Entry{{Seq: 1, Text: "of another session"}}))
		must(tx.AppendHistory(1, rows[4:]))
		must(tx.AppendHistory(1, nil))
	})
	if err := journal.Do(t.Context(), f, func(tx journal.Tx) error {
		return tx.AppendHistory(1, []*busv1.Entry{{Seq: 10, Text: "again"}})
	}); err == nil {
		t.Error("a row was stored under a number that is taken")
	}
	f.view(func(r journal.Reader) {
		for name, c := range map[string]struct {
			after, max int64
			want       []*busv1.Entry
			truncated  bool
		}{
			"all":                {0, 1 << 20, rows, false},
			"behind a row":       {7, 1 << 20, rows[7:], false},
			"exactly two":        {0, size[8] + size[9], rows[8:], true},
			"almost two":         {0, size[8] + size[9] - 1, rows[9:], true},
			"at least one":       {0, 0, rows[9:], true},
			"all behind, barely": {8, size[8] + size[9], rows[8:], false},
			"none":               {10, 1 << 20, nil, false},
		} {
			got, truncated, err := r.History(1, c.after, c.max)
			if must(err); truncated != c.truncated {
				t.Errorf("%s: truncated is %t, want %t", name, truncated, c.truncated)
			}
			if diff := cmp.Diff(c.want, got, protocmp.Transform()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
		for name, c := range map[string]struct {
			before int64
			limit  int
			want   []*busv1.Entry
		}{
			"the newest":           {0, 3, rows[7:]},
			"in front of a row":    {8, 3, rows[4:7]},
			"fewer than the limit": {3, 5, rows[:2]},
			"in front of the last": {10, 1, rows[8:9]},
			"in front of none":     {1, 5, nil},
			"behind the end":       {99, 2, rows[8:]},
		} {
			got, err := r.HistoryBefore(1, c.before, c.limit)
			must(err)
			if diff := cmp.Diff(c.want, got, protocmp.Transform()); diff != "" {
				t.Errorf("a page, %s (-want +got):\n%s", name, diff)
			}
		}
	})
}

func testTurnsAndCalls(t *testing.T, open Open) {
	f := start(t, open)
	turn := journal.Turn{Session: 1, Inputs: []int64{4, 5}, ReplyTo: "r", Chain: "e1", StartedAt: 6}
	call := journal.Call{Session: 1, ProviderID: "p", Name: "tool", Arguments: []byte("not json"), StartedAt: 7}
	f.do(func(tx journal.Tx) {
		must(tx.PutTurn(&turn))
		must(tx.PutTurn(&journal.Turn{Session: 2, Chain: "e1"}))
		call.Turn = turn.ID
		for range 4 {
			call.ID = 0
			must(tx.PutCall(&call))
		}
	})
	calls := make([]journal.Call, 4)
	f.do(func(tx journal.Tx) {
		for i := range calls {
			calls[i] = *ok(tx.Call(call.ID - 3 + int64(i)))
			calls[i].State = journal.CallState(i)
			must(tx.PutCall(&calls[i]))
		}
	})
	turn.Outcome, turn.UsedSend, turn.Interrupted, turn.EndedAt, turn.Inputs = "ok", true, 3, 8, []int64{4, 5}
	calls[2].Result, calls[2].IsError, calls[2].EndedAt = "the result", true, 9
	f.do(func(tx journal.Tx) {
		must(tx.PutTurn(&turn))
		must(tx.PutCall(&calls[2]))
	})
	var next journal.Call
	f.do(func(tx journal.Tx) {
		must(tx.DeleteCall(calls[3].ID))
		must(tx.DeleteCall(calls[3].ID))
	})
	f.reopen()
	f.do(func(tx journal.Tx) { must(tx.PutCall(&next)) })
	if next.ID <= calls[3].ID {
		t.Errorf("the call after the deleted %d has the id %d", calls[3].ID, next.ID)
	}
	f.view(func(r journal.Reader) {
		if ok(r.Call(calls[3].ID)) != nil {
			t.Error("a deleted call is still there")
		}
		if diff := cmp.Diff(&turn, ok(r.Turn(turn.ID))); diff != "" {
			t.Errorf("the turn (-stored +read):\n%s", diff)
		}
		if diff := cmp.Diff(&calls[2], ok(r.Call(calls[2].ID))); diff != "" {
			t.Errorf("the call (-stored +read):\n%s", diff)
		}
		if diff := cmp.Diff(calls[:2], ok(r.OpenCalls(turn.ID))); diff != "" {
			t.Errorf("the open calls, in order (-want +got):\n%s", diff)
		}
		if n := ok(r.TurnsOf("e1", 10)); n != 2 {
			t.Errorf("%d turns follow from e1, want 2", n)
		}
		if ok(r.Turn(99)) != nil || ok(r.Call(99)) != nil || ok(r.TurnsOf("e1", 1)) != 1 || ok(r.TurnsOf("e2", 10)) != 0 {
			t.Error("there are turns or calls that nobody stored")
		}
	})
}

func testConversations(t *testing.T, open Open) {
	f := start(t, open)
	c := journal.Conversation{Handle: "h1", Channel: "telegram", Address: "42", Thread: "t", Group: true, CreatedAt: 5}
	plain := journal.Conversation{Handle: "h2", Channel: "telegram", Address: "42"}
	f.do(func(tx journal.Tx) {
		must(tx.PutConversation(&c))
		must(tx.PutConversation(&plain))
	})
	for _, taken := range []journal.Conversation{{Handle: "h1", Channel: "x"},
		{Handle: "h3", Channel: "telegram", Address: "42"}} {
		if err := journal.Do(t.Context(), f, func(tx journal.Tx) error { return tx.PutConversation(&taken) }); err == nil {
			t.Errorf("%+v has a handle or an address that is taken", taken)
		}
	}
	c.Handle, c.Agent, c.Model, c.Epoch = "h4", "chief", "openai/large", 3
	f.do(func(tx journal.Tx) { must(tx.PutConversation(&c)) })
	f.reopen()
	f.view(func(r journal.Reader) {
		for name, got := range map[string]*journal.Conversation{
			"id": ok(r.Conversation(c.ID)), "handle": ok(r.ConversationByHandle("h4")),
			"address": ok(r.ConversationByAddress("telegram", "42", "t")),
		} {
			if diff := cmp.Diff(&c, got); diff != "" {
				t.Errorf("the conversation by its %s (-stored +read):\n%s", name, diff)
			}
		}
		missing := []*journal.Conversation{ok(r.Conversation(99)), ok(r.ConversationByHandle("")),
			ok(r.ConversationByHandle("h1")),
			ok(r.ConversationByAddress("telegram", "43", ""))}
		if slices.ContainsFunc(missing, func(c *journal.Conversation) bool { return c != nil }) {
			t.Errorf("there are conversations that nobody stored: %+v", missing)
		}
	})
}
