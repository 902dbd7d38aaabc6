package bus_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

func sends(hold bool) bus.Subscription {
	return bus.Subscription{
		Pattern:    "channel.send.tg",
		Ordered:    true,
		AckWait:    time.Minute,
		MaxDeliver: 5,
		MaxAge:     time.Hour,
		Hold:       hold,
	}
}

// TestUncertainSends crashes at every point of a send's way: uncertain is what
// was handed out, and nothing else.
func TestUncertainSends(t *testing.T) {
	inWorld(t, func(w *world) {
		w.subscribe("tg", sends(false))
		tg := w.attach("tg", 100)
		w.publish("channel.send.tg", "handed/1", "handed/2", "retried/1", "failed/1", "acked/1")
		tg.wantHeld("handed/1", "retried/1", "failed/1", "acked/1")
		tg.retry("retried/1", time.Minute)
		tg.fail("failed/1")
		tg.ack("acked/1", effect(&busv1.Receipt{ProviderId: "p"}))
		tg.holds()
		w.Hold("tg", true)
		w.publish("channel.send.tg", "held/1")
		tg.wantHeld("handed/1")
		w.crash()

		uncertain := map[string]bool{}
		tg = w.attach("tg", 100)
		time.Sleep(2 * time.Minute)
		for _, name := range tg.holds() {
			uncertain[name] = tg.take(name).GetUncertain()
		}
		if want := map[string]bool{
			"handed/1":  true,
			"retried/1": false,
			"failed/1":  false,
			"held/1":    false,
		}; !equalMaps(
			uncertain,
			want,
		) {
			w.Errorf("after the crash uncertain are %v, want %v", uncertain, want)
		}
	})
}

func equalMaps[K, V comparable](a, b map[K]V) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if w, found := b[k]; !found || v != w {
			return false
		}
	}
	return true
}

// TestSendsOfAStoppedChannel stops a channel on purpose. What was sent to it and not
// taken is new the next time, unless its last frames were lost: then a handler may have
// taken it.
func TestSendsOfAStoppedChannel(t *testing.T) {
	for name, lost := range map[string]bool{"its_answers_were_read": false, "its_last_frames_were_lost": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.subscribe("tg", sends(false))
				sink := w.Attach(&bus.Actor{ID: "tg", Generation: 1})
				sink.Credit(2)
				w.publish("channel.send.tg", "sent/1", "waiting/1", "later/1")
				handed := map[string]bool{}
				for len(handed) < 2 {
					f, _ := sink.Next(w.Context())
					for _, d := range f.Deliveries {
						handed[label(d)] = true
					}
				}
				if lost {
					sink.Lost()
				}
				w.Gone("tg", 1, "it was stopped", true)
				tg := w.attach("tg", 100)
				for _, name := range []string{"sent/1", "waiting/1", "later/1"} {
					if got, want := tg.take(name).GetUncertain(), lost && handed[name]; got != want {
						w.Errorf("%s is uncertain: %t, want %t", name, got, want)
					}
				}
			})
		})
	}
}

// TestBacklogIsNotUncertain crashes while a long backlog waits for credit: only
// what was handed out may have been sent.
func TestBacklogIsNotUncertain(t *testing.T) {
	for name, backlogFirst := range map[string]bool{"found at the start": true, "accepted in one commit": false} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			inWorld(t, func(w *world) {
				var names []string
				for c := 'a'; c <= 'z'; c++ {
					names = append(names, string(c)+"/1", string(c)+"/2")
				}
				w.subscribe("tg", sends(false))
				if backlogFirst {
					w.publish("channel.send.tg", names...)
					w.crash()
				}
				sink := w.Attach(&bus.Actor{ID: "tg", Generation: 1})
				sink.Credit(3)
				if !backlogFirst {
					w.publish("channel.send.tg", names...)
				}
				handed := map[string]bool{}
				for len(handed) < 3 {
					f, _ := sink.Next(w.Context())
					for _, d := range f.Deliveries {
						handed[label(d)] = true
					}
				}
				w.events("x") // all that can happen has happened
				w.crash()
				tg := w.attach("tg", 100)
				seen := 0
				for _, name := range names {
					d := tg.take(name)
					if seen++; d.GetUncertain() != handed[name] {
						w.Errorf("%s was handed out: %t; uncertain: %t", name, handed[name], d.GetUncertain())
					}
					tg.answer(d, &busv1.Outcome{Kind: busv1.Outcome_KIND_ACK})
				}
			})
		})
	}
}

// TestSendIsMarkedFirst has the mark of a send in flight durable before the
// channel gets it.
func TestSendIsMarkedFirst(t *testing.T) {
	inWorld(t, func(w *world) {
		w.subscribe("tg", sends(false))
		tg := w.attach("tg", 100)
		for _, name := range []string{"at once/1", "at once/2"} {
			seq := w.publish("channel.send.tg", name)[0]
			tg.wantHeld(name)
			w.wantState(seq, journal.InFlight)
			tg.ack(name)
		}
		// Behind another one it is only waiting.
		seqs := w.publish("channel.send.tg", "k/1", "k/2")
		w.wantState(seqs[1], journal.Pending)
		tg.ack("k/1")
		tg.wantHeld("k/2")
		w.wantState(seqs[1], journal.InFlight)
		tg.retry("k/2", time.Minute)
		tg.wantHeld()
		w.wantState(seqs[1], journal.Pending)
		w.Pause("tg")
		seq := w.publish("channel.send.tg", "paused/1")[0]
		w.wantState(seq, journal.Pending)
	})
}

// TestProcessEndsWhileSending marks a repetition as such when the process that
// was sending ended, on purpose or not.
func TestProcessEndsWhileSending(t *testing.T) {
	inWorld(t, func(w *world) {
		w.subscribe("tg", sends(false))
		for round, onPurpose := range []bool{true, false} {
			tg := w.attach("tg", 100)
			w.publish("channel.send.tg", "k/1")
			tg.wantHeld("k/1")
			tg.gone(onPurpose)
			tg = w.attach("tg", 100)
			time.Sleep(2 * time.Second)
			d := tg.take("k/1")
			if attempt := int32(1 + round); !d.GetUncertain() || d.GetAttempt() != attempt {
				w.Errorf(
					"stopped on purpose: %t; uncertain: %t, attempt %d, want %d",
					onPurpose,
					d.GetUncertain(),
					d.GetAttempt(),
					attempt,
				)
			}
			tg.answer(d, &busv1.Outcome{Kind: busv1.Outcome_KIND_ACK})
			tg.gone(true)
		}
	})
}

// TestHoldUncertain has a channel that must not repeat: what may have been sent
// dies, whatever made it uncertain, and comes back only if a person wants it.
func TestHoldUncertain(t *testing.T) {
	inWorld(t, func(w *world) {
		w.subscribe("tg", sends(true))
		tg := w.attach("tg", 100)
		seqs := w.publish("channel.send.tg", "unknown/1", "stopped/1", "crashed/1", "kernel/1", "failed/1", "unknown/2")
		tg.answer(tg.take("unknown/1"), &busv1.Outcome{Kind: busv1.Outcome_KIND_UNKNOWN, Reason: "timeout"})
		tg.fail("failed/1") // known not to be sent
		tg.ack("unknown/2")
		tg.holds()
		tg.gone(true)
		w.crash()
		tg = w.attach("tg", 100)
		time.Sleep(5 * time.Second)
		tg.wantHeld("failed/1")
		for i, name := range []string{"unknown/1", "stopped/1", "crashed/1", "kernel/1"} {
			if d := w.wantState(seqs[i], journal.Dead); !strings.Contains(d.Reason, "it is unknown whether it was sent") {
				w.Errorf("%s died because %q", name, d.Reason)
			}
		}
		if n := len(w.events("system.delivery.dead")); n != 4 {
			w.Errorf("%d deaths are told, want 4", n)
		}
		if _, err := w.Resubmit(journal.EventID(seqs[0])); err != nil {
			w.Fatal(err)
		}
		tg.wantHeld("failed/1", "unknown/1")
	})
}

// TestHeldChannel hands nothing to a channel that is not ready, also when its
// subscription is newer than that, and all of it when it is.
func TestHeldChannel(t *testing.T) {
	inWorld(t, func(w *world) {
		w.Hold("tg", true)
		w.subscribe("tg", append(on("a.b"), sends(false))...)
		tg := w.attach("tg", 100)
		w.publish("channel.send.tg", "k/1", "l/1", "k/2")
		w.publish("a.b", "event/1")
		tg.wantHeld("event/1") // it is not only a channel
		waiting := w.Waiting("tg")
		if len(waiting) != 3 {
			w.Errorf("waiting are %+v", waiting)
		}
		w.Hold("tg", false)
		tg.wantHeld("event/1", "k/1", "l/1")
		w.Hold("tg", true)
		tg.ack("k/1")
		tg.wantHeld("event/1", "l/1")
		w.Hold("tg", false)
		tg.wantHeld("event/1", "l/1", "k/2")
	})
}

// TestReceipt belongs to the acknowledgement of a send, and stays with it.
func TestReceipt(t *testing.T) {
	inWorld(t, func(w *world) {
		w.subscribe("tg", append(on("a.b"), sends(false))...)
		tg := w.attach("tg", 100)
		settled := make(chan journal.Delivery, 1)
		receipt := effect(&busv1.Receipt{ProviderId: "m1"})
		seq := w.publish("channel.send.tg", "k/1")[0]
		w.OnSettled(seq, func(d journal.Delivery) { settled <- d })
		w.publish("a.b", "plain/1")
		d := tg.take("k/1")
		_, err := tg.commit(&busv1.Commit{Lane: d.GetToken(), Effects: []*busv1.Effect{receipt}})
		wantError(w, err, contract.ErrInvalid)
		_, err = tg.commit(&busv1.Commit{Effects: []*busv1.Effect{receipt}})
		wantError(w, err, contract.ErrInvalid)
		tg.ack("plain/1", receipt)
		tg.answer(d, &busv1.Outcome{Kind: busv1.Outcome_KIND_ACK, Effects: []*busv1.Effect{receipt}})
		if d := <-settled; d.ProviderID != "m1" || d.State != journal.Done {
			w.Errorf("told is %+v", d)
		}
		if d := w.wantState(seq, journal.Done); d.ProviderID != "m1" {
			w.Errorf("stored is %+v", d)
		}
	})
}

// TestLargeBacklogInFrames has more waiting than one message can hold.
func TestLargeBacklogInFrames(t *testing.T) {
	inWorld(t, func(w *world) {
		w.subscribe("x", on("a.b")...)
		const n = 24
		for i := range n {
			w.publish("a.b", string(rune('a'+i))+"/"+strings.Repeat("x", contract.MaxPayload-10))
		}
		sink := w.Attach(&bus.Actor{ID: "x", Generation: 1})
		sink.Credit(100)
		var sizes []int
		for got := 0; got < n; {
			f, _ := sink.Next(w.Context())
			size := 0
			for _, d := range f.Deliveries {
				size += len(d.GetEvent().GetPayload())
				got++
			}
			sizes = append(sizes, size)
		}
		if slices.Max(sizes) > contract.MaxMessage/2 {
			w.Errorf("frames have %v bytes, a message %d", sizes, contract.MaxMessage)
		}
	})
}

// TestInputContext gives an agent what is true when it gets its input, not when
// the input came.
func TestInputContext(t *testing.T) {
	inWorld(t, func(w *world) {
		input := bus.Subscription{Pattern: "agent.input.bot", Ordered: true, AckWait: time.Minute, MaxDeliver: 3}
		w.subscribe("bot", input)
		w.subscribe("audit", bus.Subscription{Pattern: "agent.input.*", Ordered: true, AckWait: time.Minute, MaxDeliver: 3})
		bot, audit := w.attach("bot", 100), w.attach("audit", 100)
		put := func(key string) {
			if err := w.Do(func(tx *bus.Tx) error { _, err := tx.KVPut("context", key, nil); return err }); err != nil {
				w.Fatal(err)
			}
		}
		w.publish("agent.input.bot", "s1/first", "s1/second", "s2/first")
		if d := bot.take(
			"s1/first",
		); d.GetTurn().GetSession() != "s1" || d.GetTurn().GetHistorySeq() != 0 ||
			d.GetTurn().GetWaiting() != 1 {
			w.Errorf("the first input comes with %v", d.GetTurn())
		} else {
			put("one")
			bot.answer(d, &busv1.Outcome{Kind: busv1.Outcome_KIND_ACK})
		}
		if d := bot.take("s1/second"); d.GetTurn().GetHistorySeq() != 1 || d.GetTurn().GetWaiting() != 0 {
			w.Errorf("the second input comes with %v", d.GetTurn())
		} else {
			put("two")
			bot.answer(d, &busv1.Outcome{Kind: busv1.Outcome_KIND_RETRY})
		}
		if d := bot.take("s1/second"); d.GetTurn().GetHistorySeq() != 2 {
			w.Errorf("repeated, it comes with %v", d.GetTurn())
		}
		for _, d := range []*busv1.Delivery{audit.take("s1/first"), audit.take("s2/first")} {
			if l, err := w.Lease(
				audit.actor,
				d.GetToken(),
			); err != nil || l.Session != 0 || l.Agent != "" ||
				d.GetTurn() != nil {
				w.Errorf("who only watches inputs holds a session: %+v, %v", l, err)
			}
		}
		// Not handed out at once: its context is made later.
		bot.gone(true)
		slow := w.Attach(&bus.Actor{ID: "bot", Generation: 1})
		w.publish("agent.input.bot", "s3/first")
		put("three")
		slow.Credit(100)
		for found := false; !found; {
			f, _ := slow.Next(w.Context())
			for _, d := range f.Deliveries {
				if label(d) == "s3/first" {
					if found = true; d.GetTurn().GetHistorySeq() != 3 {
						w.Errorf("an input that waited comes with %v", d.GetTurn())
					}
				}
			}
		}
	})
}

// TestUnreadableHead has one lane whose head cannot be prepared: the others go
// on.
func TestUnreadableHead(t *testing.T) {
	inWorld(t, func(w *world) {
		w.subscribe("bot", bus.Subscription{Pattern: "agent.input.bot", Ordered: true, AckWait: time.Minute, MaxDeliver: 3})
		w.publish("agent.input.bot", "s1/unreadable", "s2/fine", "s3/fine")
		bot := w.attach("bot", 100)
		bot.wantHeld("s2/fine", "s3/fine")
		time.Sleep(10 * time.Second)
		bot.ack("s2/fine")
		w.publish("agent.input.bot", "s2/next")
		bot.wantHeld("s3/fine", "s2/next")
	})
}
