package admin_test

import (
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

func TestSessionsHaveNames(t *testing.T) {
	t.Parallel()
	w := kerneltest.New(t)
	all := []struct {
		key, sender, want string
		conversation      bool
	}{
		{key: "chan:telegram:4711:7", conversation: true, want: "telegram 4711 thread 7"},
		{key: "task:t1:s1:a", sender: "main", want: "task a for main of telegram 4711 thread 7"},
		{key: "task:t2:s1:b", sender: "a", want: "task b for a of telegram 4711 thread 7"},
		{key: "task:t3:s1:%C3%BC%3A", want: "task ü: for an agent of telegram 4711 thread 7"},
		{key: "task:t4:s99:c", sender: "main", want: "task c for main of s99"},
		{key: "link:lead:community", want: "link lead → community"},
		{key: "task:t5:s6:d", sender: "main", want: "task d for main of link lead → community"},
		{key: "task:c1", want: "task for telegram 4711 thread 7"},
		{key: "task:c2", want: "task"},
		{key: "job:chief:nightly%20tea", want: "job nightly tea"},
		{key: "mine", want: "mine"},
		{key: "task", want: "task"},
		{key: "link:lead:community:s1", want: "link lead → community of telegram 4711 thread 7"},
	}
	w.Do(func(tx *bus.Tx) error {
		c := &journal.Conversation{Handle: "x1", Channel: "telegram", Address: "4711", Thread: "7"}
		if err := tx.PutConversation(c); err != nil {
			return err
		}
		for _, a := range all {
			s := &journal.Session{Agent: "chief", Key: a.key}
			if a.conversation {
				s.Conversation = c.ID
			}
			if err := tx.PutSession(s); err != nil {
				return err
			}
			if a.sender == "" {
				continue
			}
			row := &busv1.Entry{Seq: 1, Kind: contract.EntryInput, InputKind: contract.InputTask, Sender: a.sender, Text: "Do it."}
			if err := tx.AppendHistory(s.ID, []*busv1.Entry{row}); err != nil {
				return err
			}
		}
		return tx.PutCall(&journal.Call{Session: 1, Turn: 1, Name: "core/delegate_task"})
	})
	for i, a := range all {
		s, err := admin.Session(t.Context(), reads(w), journal.SessionID(int64(i+1)))
		if err != nil || s.Name != a.want {
			t.Errorf("%s is %q (%v), want %q", a.key, s.Name, err, a.want)
		}
	}
	together, err := admin.Sessions(t.Context(), reads(w), &adminv1.SessionsRequest{})
	if err != nil || len(together) != len(all) {
		t.Fatalf("%d sessions, %v", len(together), err)
	}
	for _, s := range together {
		if want := all[journal.ParseSessionID(s.GetId())-1].want; s.Name != want {
			t.Errorf("among all, %s is %q, want %q", s.GetKey(), s.Name, want)
		}
	}
}
