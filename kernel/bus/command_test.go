package bus_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

func commandSub(names ...string) bus.Subscription {
	return bus.Subscription{
		Pattern:    "command.*",
		Commands:   names,
		Ordered:    true,
		AckWait:    time.Minute,
		MaxDeliver: 2,
		MaxAge:     10 * time.Minute,
	}
}

func (w *world) wantAnswers(want ...string) {
	w.Helper()
	synctest.Wait()
	w.router.mu.Lock()
	defer w.router.mu.Unlock()
	if !slices.Equal(w.router.answers, want) {
		w.Fatalf("the answers are %q, want %q", w.router.answers, want)
	}
}

// The answer to a command is routed in the commit that acknowledges it, with its
// effects.
func TestCommandIsAnsweredWithItsAcknowledgement(t *testing.T) {
	inWorld(t, func(w *world) {
		w.subscribe("lab", append(on("lab.in"), commandSub("shout"))...)
		w.subscribe("lab_watcher", on("lab.done")...)
		lab, watcher := w.attach("lab", 10), w.attach("lab_watcher", 10)
		seq := w.publish("command.shout", "chat/1")[0]
		lab.says(
			lab.take("chat/1"),
			"HEY",
			&busv1.Outcome{Kind: busv1.Outcome_KIND_ACK, Effects: []*busv1.Effect{publishEffect("lab.done", "done/1")}},
		)
		w.wantAnswers("lab to command.shout: HEY")
		watcher.wantHeld("done/1")
		w.wantState(seq, journal.Done)

		// Without an answer there is none; nor with another outcome, or for another event.
		w.publish("command.shout", "chat/2", "chat/3")
		lab.ack("chat/2")
		lab.says(lab.take("chat/3"), "HEY", &busv1.Outcome{Kind: busv1.Outcome_KIND_DROP, Reason: "no"})
		w.publish("lab.in", "chat/4")
		lab.says(lab.take("chat/4"), "HEY", &busv1.Outcome{Kind: busv1.Outcome_KIND_ACK})
		w.wantAnswers("lab to command.shout: HEY")
	})
}

// What cannot be answered has no effect either.
func TestRefusedAnswerTakesTheEffectsWithIt(t *testing.T) {
	inWorld(t, func(w *world) {
		w.subscribe("lab", commandSub("shout"))
		lab := w.attach("lab", 10)
		w.router.set(func() { w.router.refuses = fmt.Errorf("%w: not now", contract.ErrConflict) })
		w.publish("command.shout", "chat/1")
		lab.says(
			lab.take("chat/1"),
			"HEY",
			&busv1.Outcome{Kind: busv1.Outcome_KIND_ACK, Effects: []*busv1.Effect{publishEffect("lab.done", "done/1")}},
		)
		lab.wantHeld("chat/1")
		if n := len(w.events("lab.done")); n != 0 {
			w.Errorf("%d events were published", n)
		}
		w.router.set(func() { w.router.refuses, w.router.answers = nil, nil })
		lab.says(lab.take("chat/1"), "HEY", &busv1.Outcome{Kind: busv1.Outcome_KIND_ACK})
		w.wantAnswers("lab to command.shout: HEY")
	})
}

// Whether a handler may have run is known after a crash of either side.
func TestInterruptedCommandIsUncertain(t *testing.T) {
	inWorld(t, func(w *world) {
		w.subscribe("lab", commandSub("shout"))
		lab := w.attach("lab", 10)
		w.publish("command.shout", "a/1", "a/2", "b/1")
		lab.wantHeld("a/1", "b/1")
		lab.fail("b/1")
		lab.holds()
		w.crash()
		lab = w.attach("lab", 10)
		time.Sleep(time.Minute)
		uncertain := map[string]bool{}
		for _, name := range []string{"a/1", "b/1"} {
			d := lab.take(name)
			uncertain[name] = d.GetUncertain()
			if name == "a/1" {
				lab.says(d, "HEY", &busv1.Outcome{Kind: busv1.Outcome_KIND_ACK})
			}
		}
		uncertain["a/2"] = lab.take("a/2").GetUncertain()
		if want := map[string]bool{"a/1": true, "a/2": false, "b/1": false}; !equalMaps(uncertain, want) {
			w.Errorf("uncertain are %v, want %v", uncertain, want)
		}
		lab.gone(false)
		lab = w.attach("lab", 10)
		time.Sleep(time.Minute)
		if !lab.take("a/2").GetUncertain() {
			w.Error("a/2 was handed out to a process that died, and is not uncertain")
		}
	})
}

// Commands are handled in order within a conversation, whatever their names, and
// hold up no other conversation. An extension gets those that it provides, and
// who looks on gets all.
func TestCommandsOfAConversationKeepTheirOrder(t *testing.T) {
	inWorld(t, func(w *world) {
		w.subscribe("lab", commandSub("shout", "look"))
		w.subscribe("auditor", on("command.*")...)
		lab, auditor := w.attach("lab", 10), w.attach("auditor", 10)
		w.publish("command.shout", "a/1", "b/1")
		w.publish("command.sing", "a/2")
		w.publish("command.look", "a/3")
		lab.wantHeld("a/1", "b/1")
		lab.ack("a/1")
		lab.wantHeld("b/1", "a/3")
		auditor.wantHeld("a/1", "b/1")
		auditor.ack("a/1")
		auditor.wantHeld("b/1", "a/2")

		// A command that is provided no more is not handed out, one that is new is.
		w.subscribe("lab", commandSub("shout", "sing"))
		w.publish("command.look", "c/1")
		w.publish("command.sing", "c/2")
		lab.ack("a/3")
		lab.wantHeld("b/1", "c/2")
	})
}
