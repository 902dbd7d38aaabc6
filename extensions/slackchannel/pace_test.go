package slackchannel

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// In a conversation messages come once a second after a burst; others do not wait.
func TestPaceOfAConversation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(true)
		began := time.Now()
		for range postBurst + 2 {
			if err := p.enter(t.Context(), posting, "C1"); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("%d messages took %s", postBurst+2, took)
		}
		now := time.Now()
		if err := p.enter(t.Context(), posting, "C2"); err != nil || time.Since(now) != 0 {
			t.Errorf("another conversation waited %s: %v", time.Since(now), err)
		}
	})
}

// What would wait long is given back, and takes nothing from the budget.
func TestLongWaitIsGivenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(true)
		for range editBurst {
			if err := p.enter(t.Context(), editing, "C1"); err != nil {
				t.Fatal(err)
			}
		}
		p.block(editing, "C1", time.Minute)
		for range 100 {
			if err := p.enter(t.Context(), editing, "C2"); err == nil {
				t.Fatal("a blocked method is used")
			}
		}
		if err := p.enter(t.Context(), posting, "C1"); err != nil {
			t.Errorf("another method waits: %v", err)
		}
		time.Sleep(time.Minute)
		if err := p.enter(t.Context(), editing, "C2"); err != nil {
			t.Error(err)
		}
	})
}

// Drafts leave edits for final texts, and never exceed the rate of a conversation.
func TestDraftsUseSpareBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(true)
		shown := 0
		for i := range 20 {
			if ok, wait := p.tryEnter(fmt.Sprint("C", i)); ok {
				shown++
			} else if wait <= 0 {
				t.Error("there is nothing to wait for")
			}
		}
		if shown != editBurst-spareEdits {
			t.Errorf("%d drafts are shown at once", shown)
		}
		for range spareEdits {
			now := time.Now()
			if err := p.enter(t.Context(), editing, "C1"); err != nil || time.Since(now) != 0 {
				t.Errorf("a final text waited %s: %v", time.Since(now), err)
			}
		}
		time.Sleep(time.Hour)
		shown = 0
		for began := time.Now(); time.Since(began) < time.Minute; {
			ok, wait := p.tryEnter("C1")
			if ok {
				shown++
			} else {
				time.Sleep(wait)
			}
		}
		if shown > 60 || shown < 45 {
			t.Errorf("a draft was edited %d times in a minute", shown)
		}
	})
}

func TestIdleConversationsAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(true)
		for i := range 3 * maxConversations {
			if err := p.enter(t.Context(), posting, fmt.Sprint("C", i)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		if n := len(p.conversations); n > maxConversations {
			t.Errorf("%d conversations are remembered", n)
		}
	})
}
