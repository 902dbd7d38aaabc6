package admin_test

import (
	"testing"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

func TestSessionsHaveNames(t *testing.T) {
	t.Parallel()
	w := kerneltest.New(t)
	all := []struct {
		key, title   string
		within       int64
		conversation bool
		want         string
	}{
		{key: "chan:telegram:4711:7", conversation: true, want: "telegram 4711 thread 7"},
		{key: "a", title: "task a for main", within: 1, want: "task a for main of telegram 4711 thread 7"},
		{key: "b", title: "task b for a", within: 2, want: "task b for a of telegram 4711 thread 7"},
		{key: "c", title: "task c for main", within: 99, want: "task c for main of s99"},
		{key: "link", title: "link lead → community", want: "link lead → community"},
		{key: "d", title: "task d for main", within: 5, want: "task d for main of link lead → community"},
		{key: "mine", want: "mine"},
		{key: "old:task", within: 1, want: "old:task of telegram 4711 thread 7"},
		{key: "in a circle", title: "circle", within: 9, want: "circle of circle"},
	}
	w.Do(func(tx *bus.Tx) error {
		c := &journal.Conversation{Handle: "x1", Channel: "telegram", Address: "4711", Thread: "7"}
		if err := tx.PutConversation(c); err != nil {
			return err
		}
		for _, a := range all {
			s := &journal.Session{Agent: "chief", Key: a.key, Title: a.title, Within: a.within}
			if a.conversation {
				s.Conversation = c.ID
			}
			if err := tx.PutSession(s); err != nil {
				return err
			}
		}
		return nil
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

// A session has the title that its maker gives it, also when it existed before.
func TestTitlesOfSessions(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		w.Agent("worker")
		x := w.Extension(bus.Actor{ID: "x", Effects: []string{"session.ensure"}})
		first, second := kerneltest.Ensure("worker", "a"), kerneltest.Ensure("worker", "b")
		id := x.Must("", first)[0].GetSession()
		second.GetSessionEnsure().Title, second.GetSessionEnsure().Within = "task b for a", id
		other := x.Must("", second)[0].GetSession()
		expect := func(id, want string) {
			t.Helper()
			if s, err := admin.Session(w.T.Context(), reads(w), id); err != nil || s.Name != want {
				t.Errorf("%s is %q, %v, want %q", id, s.Name, err, want)
			}
		}
		expect(id, "a")
		expect(other, "task b for a of a")
		first.GetSessionEnsure().Title = "tidying"
		x.Must("", first)
		x.Must("", kerneltest.Ensure("worker", "a")) // without one it stays
		expect(id, "tidying")
		expect(other, "task b for a of tidying")
	})
}
