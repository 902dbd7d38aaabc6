package bus_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/internal/seed"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/store/commitlog/commitlogtest"
	"github.com/switchboard-run/switchboard/store/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a bus on a real store, with a router and sessions that do next to
// nothing, and extensions that the test plays. It lives in a bubble: time is
// the test's.
type world struct {
	testing.TB
	*bus.Bus
	random *rand.Rand
	dir    string
	store  *faultyStore
	router *fakeRouter
	mu     sync.Mutex
	stuck  []string
	keep   [2]time.Duration
	tune   func(bus.Options) bus.Options
	runs   int64 // generations of extensions begin above it
	subs   map[string][]bus.Subscription
	log    *commitlogtest.Memory // set: two nodes take the store from each other
	node   int
}

func inWorld(t *testing.T, test func(w *world)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.stop()
		test(w)
	})
}

func newWorld(t testing.TB) *world {
	t.Helper()
	return newWorldOver(t, nil)
}

func newWorldOver(t testing.TB, log *commitlogtest.Memory) *world {
	t.Helper()
	w := &world{
		log:    log,
		TB:     t,
		random: seed.Rand(t),
		dir:    t.TempDir(),
		router: &fakeRouter{},
		keep:   [2]time.Duration{time.Hour, 2 * time.Hour},
		subs:   map[string][]bus.Subscription{},
	}
	w.boot()
	return w
}

func (w *world) boot() {
	w.Helper()
	store, err := w.openStore()
	if err != nil {
		w.Fatal(err)
	}
	w.store = &faultyStore{Store: store, random: w.random}
	options := bus.Options{
		Store:   w.store,
		Effects: fakeEffects,
		Hooks:   w.router.hooks(),
		Log:     hclog.NewNullLogger(),
		Events:  w.keep[0],
		Dead:    w.keep[1],
		Stuck: func(extension string, generation int64, _ string) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.stuck = append(w.stuck, fmt.Sprint(extension, generation))
		},
	}
	if w.tune != nil {
		options = w.tune(options)
	}
	if w.Bus, err = bus.New(w.Context(), options); err != nil {
		w.Fatal(err)
	}
	w.runs += 100
	for id, subs := range w.subs {
		w.subscribe(id, subs...)
	}
}

func (w *world) openStore() (*sqlite.Store, error) {
	if w.log == nil {
		return sqlite.Open(filepath.Join(w.dir, "test.db"))
	}
	tenure, err := w.log.Acquire(context.Background(), fmt.Sprint(w.node))
	if err != nil {
		return nil, err
	}
	s, _, err := sqlite.OpenOver(w.Context(), filepath.Join(w.dir, fmt.Sprint("node", w.node, ".db")), w.log, tenure,
		sqlite.Options{})
	return s, err
}

// takeOver starts a bus on the other node, while the one of this node runs.
func (w *world) takeOver() {
	w.Helper()
	old, store := w.Bus, w.store
	w.node = 1 - w.node
	w.boot()
	err := old.Do(func(tx *bus.Tx) error {
		_, err := tx.Emit("a.b", "old", "of the old owner")
		return err
	})
	if !errors.Is(err, journal.ErrFenced) {
		w.Errorf("the old owner publishes: %v", err)
	}
	old.Close()
	if err := store.Close(); err != nil {
		w.Errorf("closing the old owner's store: %v", err)
	}
	synctest.Wait()
}

func (w *world) stop() {
	w.Close()
	if err := w.store.Close(); err != nil {
		w.Errorf("closing the store: %v", err)
	}
	synctest.Wait()
}

// crash loses all that is in memory only: what is under way is not written down
// as ended, because nobody says that it did.
func (w *world) crash() {
	w.Helper()
	if w.log != nil {
		w.takeOver()
		return
	}
	w.stop()
	w.boot()
}

// faultyStore refuses updates while it is full, and takes its time while it is
// slow: between applying an update, its being durable and its outcome, and
// between reading and returning what was read.
type faultyStore struct {
	journal.Store
	random     *rand.Rand
	full, slow atomic.Bool
	gate       atomic.Pointer[chan struct{}] // what was read is returned when it is closed
}

func (s *faultyStore) pause() {
	if s.slow.Load() && s.random.IntN(3) == 0 {
		time.Sleep(time.Duration(s.random.IntN(10)) * time.Millisecond)
	}
}

func (s *faultyStore) Submit(u journal.Update) {
	apply, done := u.Apply, u.Done
	u.Apply = func(tx journal.Tx) error {
		err := apply(tx)
		s.pause()
		if s.full.Load() {
			return fmt.Errorf("%w: no room", contract.ErrFull)
		}
		return err
	}
	u.Done = func(err error) {
		s.pause()
		if done != nil {
			done(err)
		}
	}
	s.Store.Submit(u)
}

func (s *faultyStore) View(ctx context.Context, read func(journal.Reader) error) error {
	defer s.pause()
	err := s.Store.View(ctx, read)
	if gate := s.gate.Load(); gate != nil {
		<-*gate
	}
	return err
}

type fakeRouter struct {
	mu      sync.Mutex
	accept  func(tx *bus.Tx, e *busv1.Event) error
	refused string // the topic of events that are not stored
	died    func(tx *bus.Tx, d *journal.Delivery, e *busv1.Event) error
	answers []string
	refuses error // what becomes of an answer
}

func (r *fakeRouter) set(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

// hooks do next to nothing.
func (r *fakeRouter) hooks() bus.Hooks {
	return bus.Hooks{
		Accept: func(tx *bus.Tx, e *busv1.Event) (func() error, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.refused != "" && e.GetTopic() == r.refused {
				return nil, nil
			}
			if accept := r.accept; accept != nil {
				return func() error { return accept(tx, e) }, nil
			}
			return bus.NoRoute, nil
		},
		Dead: func(tx *bus.Tx, d *journal.Delivery, e *busv1.Event, _ string) error {
			r.mu.Lock()
			died := r.died
			r.mu.Unlock()
			if died == nil {
				return nil
			}
			return died(tx, d, e)
		},
		Receipt: func(*bus.Tx, *busv1.Event, *busv1.Receipt) (string, error) { return "handle", nil },
		Ack: func(tx *bus.Tx, content string) error {
			r.mu.Lock()
			defer r.mu.Unlock()
			if tx.Lease.Session != 0 || content == "" {
				return nil
			}
			r.answers = append(r.answers, tx.Lease.Extension+" to "+tx.Lease.Event.GetTopic()+": "+content)
			return r.refuses
		},
		Repeat: func(_ string, e *busv1.Event) *busv1.Event {
			e = proto.CloneOf(e)
			e.Key = "marked " + e.GetKey()
			return e
		},
		Output: func(*bus.Tx, []byte) (*busv1.EffectResult, error) { return nil, errNoSessions },
		// Turn tells how many keys the owner "context" has, so that a test sees when
		// it was made.
		Turn: func(r journal.Reader, e *busv1.Event) (*busv1.TurnContext, error) {
			if strings.Contains(string(e.GetPayload()), "unreadable") {
				return nil, errNoSessions
			}
			keys, err := r.KVScan("context", "", "", 0)
			return &busv1.TurnContext{Session: e.GetKey(), HistorySeq: int64(len(keys))}, err
		},
	}
}

var errNoSessions = errors.New("this test has no sessions")

func noSessions(*bus.Tx, *busv1.Effect) (*busv1.EffectResult, error) { return nil, errNoSessions }

// fakeEffects are granted as those of sessions are, and fail.
var fakeEffects = []bus.Effect{
	{Kind: (*busv1.Effect_SessionEnsure)(nil), Permission: "session.ensure", Apply: noSessions},
	{Kind: (*busv1.Effect_Input)(nil), Permission: "input", Apply: noSessions},
	{Kind: (*busv1.Effect_TurnCancel)(nil), Permission: "turn.cancel", Apply: noSessions},
	{Kind: (*busv1.Effect_Append)(nil), Grant: bus.Agents, Apply: noSessions},
	{Kind: (*busv1.Effect_Steer)(nil), Grant: bus.Agents, Apply: noSessions},
}

// extension is one that the test plays: it takes every delivery that it has
// credit for and answers when the test says so.
type extension struct {
	w     *world
	actor *bus.Actor
	sink  *bus.Sink

	mu      sync.Mutex
	waiting []*busv1.Delivery // not answered
	seen    []string          // the events of all deliveries, with attempts
	cancels []string
}

var plain = bus.Subscription{Ordered: true, AckWait: 30 * time.Second, MaxDeliver: 3, MaxAge: 24 * time.Hour}

func on(patterns ...string) (subs []bus.Subscription) {
	for _, p := range patterns {
		s := plain
		s.Pattern = p
		subs = append(subs, s)
	}
	return subs
}

// subscribe stores subscriptions; the sends of a channel and the inputs of an
// agent are those whose topic ends in the extension's id.
func (w *world) subscribe(id string, subs ...bus.Subscription) {
	w.Helper()
	w.subs[id] = subs
	if err := w.Subscribe(id, subs); err != nil {
		w.Fatalf("subscribing %s: %v", id, err)
	}
}

// attach starts a generation of an extension, whose handlers take what is sent
// at once.
func (w *world) attach(id string, credit int) *extension {
	w.runs++
	x := &extension{
		w: w,
		actor: &bus.Actor{
			ID:         id,
			Generation: w.runs,
			Publish:    []string{"*"},
			Effects:    []string{"withdraw"},
			Channel:    true,
			Agent:      true,
		},
	}
	x.sink = w.Attach(x.actor)
	x.sink.Credit(credit)
	go func() {
		for {
			f, open := x.sink.Next(context.Background())
			if !open {
				return
			}
			x.mu.Lock()
			x.cancels = append(x.cancels, f.Cancels...)
			for _, d := range f.Deliveries {
				x.waiting = append(x.waiting, d)
				x.seen = append(x.seen, fmt.Sprintf("%s#%d", label(d), d.GetAttempt()))
			}
			x.mu.Unlock()
			x.sink.Credit(len(f.Deliveries))
		}
	}()
	return x
}

// label is the payload of the test's events: a JSON string.
func label(d *busv1.Delivery) (s string) {
	if err := json.Unmarshal(d.GetEvent().GetPayload(), &s); err != nil {
		return d.GetEvent().GetTopic()
	}
	return s
}

func (x *extension) gone(onPurpose bool) {
	x.w.Gone(x.actor.ID, x.actor.Generation, "it ended", onPurpose)
}

// holds returns what waits for an answer, once all that can happen has
// happened.
func (x *extension) holds() (labels []string) {
	synctest.Wait()
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, d := range x.waiting {
		labels = append(labels, label(d))
	}
	return labels
}

func (x *extension) cancelled() []string {
	synctest.Wait()
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.cancels)
}

func (x *extension) wantHeld(labels ...string) {
	x.w.Helper()
	got := x.holds()
	if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values(labels))) {
		x.w.Fatalf("%s holds %v, want %v", x.actor.ID, got, labels)
	}
}

// take is the delivery of an event, which is then the test's to answer.
func (x *extension) take(name string) *busv1.Delivery {
	x.w.Helper()
	held := x.holds()
	x.mu.Lock()
	defer x.mu.Unlock()
	i := slices.IndexFunc(x.waiting, func(d *busv1.Delivery) bool { return label(d) == name })
	if i < 0 {
		x.w.Fatalf("%s does not hold %s, but %v", x.actor.ID, name, held)
	}
	d := x.waiting[i]
	x.waiting = slices.Delete(x.waiting, i, i+1)
	return d
}

func (x *extension) answer(d *busv1.Delivery, o *busv1.Outcome) {
	o.Token = d.GetToken()
	x.sink.Credit(0)
	x.w.Outcome(x.actor, o)
}

func (x *extension) says(d *busv1.Delivery, text string, o *busv1.Outcome) {
	o.Token = d.GetToken()
	x.w.Answer(x.actor, o, text)
}

func (x *extension) ack(name string, effects ...*busv1.Effect) {
	x.w.Helper()
	x.answer(x.take(name), &busv1.Outcome{Kind: busv1.Outcome_KIND_ACK, Effects: effects})
}

func (x *extension) retry(name string, after time.Duration) {
	x.w.Helper()
	x.answer(
		x.take(name),
		&busv1.Outcome{Kind: busv1.Outcome_KIND_RETRY, RetryAfterMs: after.Milliseconds(), Reason: "later"},
	)
}

func (x *extension) fail(name string) {
	x.w.Helper()
	x.answer(x.take(name), &busv1.Outcome{Kind: busv1.Outcome_KIND_FAIL, Reason: "failed"})
}

// publish accepts events of the kernel's own, labelled and keyed "key/label".
func (w *world) publish(topic string, names ...string) (seqs []int64) {
	w.Helper()
	err := w.Do(func(tx *bus.Tx) error {
		seqs = seqs[:0]
		for _, name := range names {
			key, _, _ := strings.Cut(name, "/")
			e, err := tx.Emit(topic, key, name)
			if err != nil {
				return err
			}
			seqs = append(seqs, e.GetSeq())
		}
		return nil
	})
	if err != nil {
		w.Fatalf("publishing %v: %v", names, err)
	}
	return seqs
}

// load is that of all subscriptions of an extension, of which it has some.
func (w *world) load(extension string) (sum bus.Load) {
	w.Helper()
	for _, l := range w.Loads() {
		if l.Extension == extension {
			sum.Extension = extension
			sum.Lanes += l.Lanes
			sum.InFlight += l.InFlight
			sum.NoCredit = sum.NoCredit || l.NoCredit
		}
	}
	if sum.Extension == "" {
		w.Errorf("%q has no subscription", extension)
	}
	return sum
}

// withdraw withdraws an event as its publisher.
func withdraw(tx *bus.Tx, seq int64) (inTime bool, err error) {
	e, err := tx.Event(seq)
	if err != nil {
		return false, err
	}
	return tx.Withdraw(e)
}

func publishEffect(topic, name string) *busv1.Effect {
	key, _, _ := strings.Cut(name, "/")
	payload, _ := json.Marshal(name)
	return effect(&busv1.Publish{Topic: topic, Key: key, Payload: payload})
}

func effect(kind any) *busv1.Effect {
	switch k := kind.(type) {
	case *busv1.Publish:
		return &busv1.Effect{Kind: &busv1.Effect_Publish{Publish: k}}
	case *busv1.Put:
		return &busv1.Effect{Kind: &busv1.Effect_Put{Put: k}}
	case *busv1.Delete:
		return &busv1.Effect{Kind: &busv1.Effect_Delete{Delete: k}}
	case *busv1.Withdraw:
		return &busv1.Effect{Kind: &busv1.Effect_Withdraw{Withdraw: k}}
	case *busv1.Receipt:
		return &busv1.Effect{Kind: &busv1.Effect_Receipt{Receipt: k}}
	}
	panic(fmt.Sprintf("no effect %T", kind))
}

// commit submits effects as an extension and waits.
func (x *extension) commit(c *busv1.Commit) (*busv1.CommitReceipt, error) {
	receipts := make(chan *busv1.CommitReceipt, 1)
	x.w.Submit(x.actor, []*busv1.Commit{c}, func(r []*busv1.CommitReceipt) { receipts <- r[0] })
	r := <-receipts
	return r, contract.FromProto(r.GetError())
}

// deliveries reads an event's deliveries from the store.
func (w *world) deliveries(seq int64) (ds []journal.Delivery) {
	w.Helper()
	synctest.Wait()
	if err := w.View(w.Context(), func(r journal.Reader) (err error) {
		ds, err = r.Deliveries(journal.DeliveryFilter{Seq: seq})
		return err
	}); err != nil {
		w.Fatal(err)
	}
	return ds
}

// wantState checks the only delivery of an event.
func (w *world) wantState(seq int64, want journal.DeliveryState) journal.Delivery {
	w.Helper()
	ds := w.deliveries(seq)
	if len(ds) != 1 || ds[0].State != want {
		w.Fatalf("the deliveries of event %d are %+v, want one that is %s", seq, ds, want)
	}
	return ds[0]
}

// events are the labels, or topics, of what was accepted.
func (w *world) events(topic string) (events []*busv1.Event) {
	w.Helper()
	synctest.Wait()
	if err := w.View(w.Context(), func(r journal.Reader) (err error) {
		events, err = r.Events(journal.EventFilter{Topic: topic, Ascending: true, Limit: 1 << 20})
		return err
	}); err != nil {
		w.Fatal(err)
	}
	return events
}

func wantError(t testing.TB, err, want error, parts ...string) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("the error is %v, want %v", err, want)
		return
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("the error does not say %q: %v", p, err)
		}
	}
}
