package naming_test

import (
	"path/filepath"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/naming"
	"github.com/switchboard-run/switchboard/store/sqlite"
)

func TestSessionsHaveNames(t *testing.T) {
	t.Parallel()
	store, err := sqlite.Open(filepath.Join(t.TempDir(), "switchboard.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	all := []struct {
		key, sender, owner, model string
		conversation              bool
	}{
		{key: "chan:telegram:4711:7", conversation: true, owner: "telegram 4711 thread 7", model: "conversation s1"},
		{key: "task:t1:s1:a", sender: "main", owner: "task a for main of telegram 4711 thread 7", model: "task a for main of s1"},
		{key: "task:t2:s1:b", sender: "a", owner: "task b for a of telegram 4711 thread 7", model: "task b for a of s1"},
		{key: "task:t3:s1:%C3%BC%3A", owner: "task ü: for an agent of telegram 4711 thread 7", model: "task ü: for an agent of s1"},
		{key: "task:t4:s99:c", sender: "main", owner: "task c for main of s99", model: "task c for main of s99"},
		{key: "link:lead:community", owner: "link lead → community", model: "link lead → community"},
		{key: "task:t5:s6:d", sender: "main", owner: "task d for main of link lead → community", model: "task d for main of link lead → community"},
		{key: "task:c1", owner: "task for telegram 4711 thread 7", model: "task for s1"},
		{key: "task:c2", owner: "task", model: "task"},
		{key: "job:chief:nightly%20tea", owner: "job nightly tea", model: "job"},
		{key: "mine", owner: "mine", model: "mine"},
		{key: "task", owner: "task", model: "task"},
		{key: "link:lead:community:s1", owner: "link lead → community of telegram 4711 thread 7", model: "link lead → community of s1"},
	}
	done := make(chan error, 1)
	store.Submit(journal.Update{Apply: func(tx journal.Tx) error {
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
	}, Done: func(err error) { done <- err }})
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	err = store.View(t.Context(), func(r journal.Reader) error {
		for i, a := range all {
			s, err := r.Session(int64(i + 1))
			if err != nil {
				return err
			}
			for reader, want := range map[naming.Audience]string{naming.Owner: a.owner, naming.Model: a.model} {
				if got, err := naming.Session(r, s, reader); err != nil || got != want {
					t.Errorf("%s is %q (%v), want %q", a.key, got, err, want)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
