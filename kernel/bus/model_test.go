package bus_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/internal/seed"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/store/commitlog/commitlogtest"
	"github.com/switchboard-run/switchboard/store/storetest"
)

// modelDelivery is what has to be true of a delivery.
type modelDelivery struct {
	name      string
	state     journal.DeliveryState // never InFlight
	attempts  int
	uncertain bool
	held      *busv1.Delivery // by a handler
	sureEnd   bool            // its end is certain: not withdrawn
}

const modelMaxDeliver = 3

// machine applies random operations to a bus and to a model of one plain
// subscription ("x") and one of sends ("tg").
type machine struct {
	*rapid.T
	w     *world
	exts  map[string]*extension
	ds    map[string]map[int64]*modelDelivery // by extension and event
	lanes map[string]map[string][]int64       // by extension and key; pending ones, in order
	held  bool                                // the channel's sends are
	names int
}

var machineTopics = map[string]string{"x": "a.b", "tg": "channel.send.tg"}

// TestModel checks the state machine of deliveries: each is pending, with at most
// one handler, done or dead; lanes are in order; nothing is lost, handed out
// after its end, or counted wrongly, whatever happens in between.
func TestModel(t *testing.T) {
	storetest.Checks(t, 20)
	t.Parallel()
	checkModel(t, func(int) *commitlogtest.Memory { return nil })
}

// TestModelOverALog does the same with two buses on one log: each crash is a takeover,
// while the old owner runs, and answers of the log are lost.
func TestModelOverALog(t *testing.T) {
	storetest.Checks(t, 20)
	t.Parallel()
	checkModel(t, func(run int) *commitlogtest.Memory {
		n := run
		return &commitlogtest.Memory{Lease: 2 * time.Second, Faulty: func() commitlogtest.Fault {
			n++
			return []commitlogtest.Fault{5: commitlogtest.LostAnswer, 9: commitlogtest.LostCall, 12: commitlogtest.Late, 16: 0}[n%17]
		}}
	})
}

func checkModel(t *testing.T, log func(run int) *commitlogtest.Memory) {
	t.Helper()
	runs := 0
	seed.Check(t, func(rt *rapid.T) {
		runs++
		var failure any // rapid wants it outside of the bubble
		synctest.Test(t, func(t *testing.T) {
			defer func() { failure = recover() }()
			runModel(t, rt, log(runs))
		})
		switch fmt.Sprintf("%T", failure) {
		case "<nil>":
		case "rapid.invalidData": // to be told apart by its line
			panic(failure)
		default:
			panic(failure)
		}
	})
}

func runModel(t *testing.T, rt *rapid.T, log *commitlogtest.Memory) {
	t.Helper()
	m := &machine{
		T:     rt,
		exts:  map[string]*extension{},
		ds:    map[string]map[int64]*modelDelivery{},
		lanes: map[string]map[string][]int64{},
	}
	m.w = newWorldOver(t, log)
	defer func() { m.w.stop() }()
	m.w.keep = [2]time.Duration{1 << 60, 1 << 60}
	m.w.tune = func(o bus.Options) bus.Options { return o.WithWindows(3, 4, 3) }
	m.w.crash()
	for id, topic := range machineTopics {
		m.w.subscribe(
			id,
			bus.Subscription{Pattern: topic, Ordered: true, AckWait: 1000 * time.Hour, MaxDeliver: modelMaxDeliver},
		)
		m.ds[id], m.lanes[id] = map[int64]*modelDelivery{}, map[string][]int64{}
	}
	rt.Repeat(map[string]func(*rapid.T){
		"publish":   m.publish,
		"publish2":  m.publish,
		"answer":    func(rt *rapid.T) { m.answer(rt, false) },
		"answer2":   func(rt *rapid.T) { m.answer(rt, false) },
		"answer3":   func(rt *rapid.T) { m.answer(rt, false) },
		"full disk": func(rt *rapid.T) { m.answer(rt, true) },
		"attach":    m.attach,
		"gone":      m.gone,
		"crash":     func(*rapid.T) { m.crash() },
		"hold":      func(*rapid.T) { m.hold() },
		"withdraw":  m.withdraw,
		"replace":   m.replace,
		"take back": m.takeBack,
		"resubmit":  m.resubmit,
		"wait": func(rt *rapid.T) {
			time.Sleep(rapid.SampledFrom([]time.Duration{time.Second, 10 * time.Minute}).Draw(rt, "time"))
		},
		"": m.check,
	})
	m.finish(rt)
}

func drawExtension(rt *rapid.T) string {
	return rapid.SampledFrom([]string{"x", "tg"}).Draw(rt, "extension")
}
func drawKey(rt *rapid.T) string { return rapid.SampledFrom([]string{"a", "b", ""}).Draw(rt, "key") }

func (m *machine) publish(rt *rapid.T) {
	id := drawExtension(rt)
	var names []string
	for range rapid.IntRange(1, 6).Draw(rt, "events") {
		m.names++
		names = append(names, fmt.Sprintf("%s/%d", drawKey(rt), m.names))
	}
	for i, seq := range m.w.publish(machineTopics[id], names...) {
		m.ds[id][seq] = &modelDelivery{name: names[i]}
		key := names[i][:len(names[i])-len(fmt.Sprint("/", m.names-len(names)+i+1))]
		m.lanes[id][key] = append(m.lanes[id][key], seq)
	}
}

// pick draws one of the deliveries that fit.
func (m *machine) pick(rt *rapid.T, id string, fits func(*modelDelivery) bool) (int64, *modelDelivery) {
	var seqs []int64
	for seq, d := range m.ds[id] {
		if fits(d) {
			seqs = append(seqs, seq)
		}
	}
	if len(seqs) == 0 {
		return 0, nil
	}
	slices.Sort(seqs)
	seq := rapid.SampledFrom(seqs).Draw(rt, "seq")
	return seq, m.ds[id][seq]
}

// end settles a delivery in the model.
func (m *machine) end(id string, seq int64, state journal.DeliveryState) {
	d := m.ds[id][seq]
	d.state, d.held = state, nil
	for key, lane := range m.lanes[id] {
		m.lanes[id][key] = slices.DeleteFunc(lane, func(s int64) bool { return s == seq })
	}
}

func (m *machine) failed(id string, seq int64, uncertain bool) {
	d := m.ds[id][seq]
	d.held = nil
	d.uncertain = d.uncertain || uncertain
	if d.attempts++; d.attempts >= modelMaxDeliver {
		m.end(id, seq, journal.Dead)
	}
}

// answer has a handler answer; if full, while the store takes nothing.
func (m *machine) answer(rt *rapid.T, full bool) {
	id := drawExtension(rt)
	seq, d := m.pick(rt, id, func(d *modelDelivery) bool { return d.held != nil })
	if d == nil {
		return
	}
	effects := rapid.Bool().Draw(rt, "effects")
	kind := busv1.Outcome_Kind(rapid.IntRange(1, 5).Draw(rt, "kind"))
	o := &busv1.Outcome{
		Token:        d.held.GetToken(),
		Kind:         kind,
		RetryAfterMs: rapid.SampledFrom([]int64{0, 300, 60_000}).Draw(rt, "after"),
	}
	if effects && kind <= busv1.Outcome_KIND_ACK {
		o.Effects = []*busv1.Effect{publishEffect("c.d", d.name)}
	}
	x := m.exts[id]
	if m.w.store.full.Store(full); full {
		defer func() {
			time.Sleep(500 * time.Millisecond)
			m.w.store.full.Store(false)
			time.Sleep(3 * time.Second) // what is tried again has been
		}()
	}
	m.w.Outcome(x.actor, o)
	bare := id == "x" && len(o.GetEffects()) == 0
	switch {
	case kind == busv1.Outcome_KIND_ACK && (!full || bare || id == "tg"):
		d.sureEnd = true
		m.end(id, seq, journal.Done)
	case kind == busv1.Outcome_KIND_DROP && !full:
		m.end(id, seq, journal.Dead)
	case kind == busv1.Outcome_KIND_FAIL:
		m.failed(id, seq, false)
	case kind == busv1.Outcome_KIND_UNKNOWN:
		m.failed(id, seq, true)
	default:
		d.held = nil
	}
}

func (m *machine) attach(rt *rapid.T) {
	id := drawExtension(rt)
	if m.exts[id] == nil {
		m.exts[id] = m.w.attach(id, rapid.IntRange(0, 4).Draw(rt, "credit"))
	}
}

func (m *machine) gone(rt *rapid.T) {
	id, onPurpose := drawExtension(rt), rapid.Bool().Draw(rt, "on purpose")
	if m.exts[id] == nil {
		return
	}
	m.exts[id].gone(onPurpose)
	delete(m.exts, id)
	for seq, d := range m.ds[id] {
		switch {
		case d.held == nil:
		case onPurpose:
			d.held = nil
			d.uncertain = d.uncertain || id == "tg"
		default:
			m.failed(id, seq, id == "tg")
		}
	}
}

func (m *machine) crash() {
	m.w.crash()
	m.held = false
	clear(m.exts)
	for id := range m.ds {
		for _, d := range m.ds[id] {
			d.uncertain = d.uncertain || d.held != nil && id == "tg"
			d.held = nil
		}
	}
}

func (m *machine) hold() {
	m.held = !m.held
	m.w.Hold("tg", m.held)
}

func (m *machine) withdraw(rt *rapid.T) {
	id := drawExtension(rt)
	seq, d := m.pick(rt, id, func(d *modelDelivery) bool { return !d.sureEnd })
	if d == nil {
		return
	}
	var inTime bool
	if err := m.w.Do(func(tx *bus.Tx) (err error) { inTime, err = withdraw(tx, seq); return err }); err != nil {
		rt.Fatal(err)
	}
	if inTime == (d.held != nil) {
		rt.Fatalf("withdrawing event %d, held %t: in time %t", seq, d.held != nil, inTime)
	}
	if inTime && d.state == journal.Pending {
		m.end(id, seq, journal.Done)
	}
}

func (m *machine) replace(rt *rapid.T) {
	id := drawExtension(rt)
	seq, d := m.pick(rt, id, func(d *modelDelivery) bool { return d.state == journal.Pending })
	if d == nil {
		return
	}
	m.names++
	key := keyOf(d.name)
	next := &modelDelivery{name: fmt.Sprintf("%s/%d", key, m.names)}
	payload, _ := json.Marshal(next.name)
	e := &busv1.Event{Topic: machineTopics[id], Key: key, Source: "kernel", Payload: payload}
	var replaced bool
	if err := m.w.Do(func(tx *bus.Tx) error {
		ds, err := tx.Deliveries(journal.DeliveryFilter{Seq: seq})
		if err != nil {
			return err
		}
		e.Seq = 0
		replaced, err = tx.Replace(ds[0], e)
		return err
	}); err != nil {
		rt.Fatal(err)
	}
	if replaced == (d.held != nil) {
		rt.Fatalf("replacing event %d, held %t: %t", seq, d.held != nil, replaced)
	}
	if replaced {
		i := slices.Index(m.lanes[id][key], seq)
		m.lanes[id][key][i] = e.GetSeq()
		m.ds[id][e.GetSeq()] = next
		d.state, d.sureEnd = journal.Done, true
	}
}

func keyOf(name string) string {
	for i := range name {
		if name[i] == '/' {
			return name[:i]
		}
	}
	return name
}

func (m *machine) takeBack(rt *rapid.T) {
	id, key := drawExtension(rt), rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "key")
	var taken *busv1.Event
	if err := m.w.Do(
		func(tx *bus.Tx) (err error) { taken, err = tx.TakeBack(id, machineTopics[id], key); return err },
	); err != nil {
		rt.Fatal(err)
	}
	var want int64
	if lane := m.lanes[id][key]; len(lane) > 0 && m.ds[id][lane[0]].held != nil {
		want = lane[0]
		m.ds[id][want].sureEnd = true
		m.end(id, want, journal.Done)
	}
	if taken.GetSeq() != want {
		rt.Fatalf("taken back from lane %s of %s is event %d, want %d", key, id, taken.GetSeq(), want)
	}
}

func (m *machine) resubmit(rt *rapid.T) {
	id := drawExtension(rt)
	seq, d := m.pick(rt, id, func(d *modelDelivery) bool { return d.state == journal.Dead })
	if d == nil {
		return
	}
	if n, err := m.w.Resubmit(journal.EventID(seq)); n != 1 || err != nil {
		rt.Fatalf("resubmitting event %d: %d, %v", seq, n, err)
	}
	d.state, d.attempts = journal.Pending, 0
	m.lanes[id][keyOf(d.name)] = append(m.lanes[id][keyOf(d.name)], seq)
}

// check learns what was handed out and compares.
func (m *machine) check(rt *rapid.T) {
	time.Sleep(25 * time.Millisecond) // lazy acknowledgements are durable
	synctest.Wait()
	for id, x := range m.exts {
		x.mu.Lock()
		handed := x.waiting
		x.waiting = nil
		x.mu.Unlock()
		for _, got := range handed {
			m.checkHandedOut(rt, id, got)
		}
	}
	if err := m.w.View(m.w.Context(), func(r journal.Reader) error {
		for id := range m.ds {
			if err := m.checkStore(rt, r, id); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		rt.Fatal(err)
	}
}

func (m *machine) checkHandedOut(rt *rapid.T, id string, got *busv1.Delivery) {
	seq := got.GetEvent().GetSeq()
	d := m.ds[id][seq]
	switch {
	case d == nil:
		rt.Fatalf("%s got an event that nobody published: %v", id, got)
	case label(got) != d.name:
		rt.Fatalf("%s got event %d as %s, want %s", id, seq, label(got), d.name)
	case d.state != journal.Pending:
		rt.Fatalf("%s got event %d, which is %s", id, seq, d.state)
	case d.held != nil:
		rt.Fatalf("%s got event %d twice at once", id, seq)
	case int(got.GetAttempt()) != d.attempts+1:
		rt.Fatalf("%s got event %d as attempt %d, want %d", id, seq, got.GetAttempt(), d.attempts+1)
	case got.GetUncertain() != d.uncertain:
		rt.Fatalf("%s got event %d uncertain: %t, want %t", id, seq, got.GetUncertain(), d.uncertain)
	case id == "tg" && m.held:
		rt.Fatalf("a held channel got event %d", seq)
	}
	if key := keyOf(d.name); key != "" && m.lanes[id][key][0] != seq {
		rt.Fatalf("%s got event %d of lane %s, whose order is %v", id, seq, key, m.lanes[id][key])
	}
	d.held = got
}

func (m *machine) checkStore(rt *rapid.T, r journal.Reader, id string) error {
	subs, err := r.Subscriptions()
	if err != nil {
		return err
	}
	sub := subs[slices.IndexFunc(subs, func(s journal.Subscription) bool { return s.Extension == id })]
	for seq, d := range m.ds[id] {
		stored, err := r.Delivery(seq, sub.ID)
		if err != nil || stored == nil {
			return fmt.Errorf("the delivery of event %d is %v: %w", seq, stored, err)
		}
		state := stored.State
		if state == journal.InFlight {
			if id == "x" || d.held == nil && !d.uncertain {
				rt.Fatalf("event %d of %s is in flight, and nobody holds it: %+v", seq, id, *stored)
			}
			state = journal.Pending
		} else if id == "tg" && d.held != nil {
			rt.Fatalf("event %d is being sent, and not marked so: %+v", seq, *stored)
		}
		if state != d.state || stored.Attempts != d.attempts && state == journal.Pending {
			rt.Fatalf("event %d of %s is %+v, want %s after %d attempts", seq, id, *stored, d.state, d.attempts)
		}
	}
	for key, want := range m.lanes[id] {
		pending, err := r.PendingLane(sub.ID, key, -1<<62, 1<<20)
		if err != nil {
			return err
		}
		var got []int64
		for _, d := range pending {
			got = append(got, d.Seq)
		}
		if !slices.Equal(got, want) {
			rt.Fatalf("lane %q of %s has %v pending, want %v", key, id, got, want)
		}
	}
	return nil
}

// finish has everything handled in the end: nothing is stuck or lost.
func (m *machine) finish(rt *rapid.T) {
	if m.held {
		m.hold()
	}
	for id := range machineTopics {
		if m.exts[id] != nil {
			m.exts[id].sink.Credit(4)
		} else {
			m.exts[id] = m.w.attach(id, 4)
		}
	}
	for rounds := 0; ; rounds++ {
		time.Sleep(10 * time.Minute)
		m.check(rt)
		left := 0
		for id := range m.ds {
			for seq, d := range m.ds[id] {
				if d.state == journal.Pending {
					left++
				}
				if d.held != nil {
					m.w.Outcome(m.exts[id].actor, &busv1.Outcome{Token: d.held.GetToken(), Kind: busv1.Outcome_KIND_ACK})
					m.end(id, seq, journal.Done)
				}
			}
		}
		if left == 0 {
			return
		}
		if rounds > 200 {
			rt.Fatalf("%d deliveries are never handed out: %+v", left, m.w.Loads())
		}
	}
}
