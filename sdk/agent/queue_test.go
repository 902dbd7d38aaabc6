package agent

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"pgregory.net/rapid"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/internal/seed"
	"github.com/switchboard-run/switchboard/sdk"
)

// queue is a world whose session has a queue: inputs come while others are
// being worked on, and the process dies now and then.
type queue struct {
	*world
	inputs map[string]contract.AgentInput // by id
	rounds map[string]int                 // of tools, by id
	wrong  []string
}

var inputID = regexp.MustCompile(`<i\d+>`)

func (q *queue) fail(format string, args ...any) {
	q.wrong = append(q.wrong, fmt.Sprintf(format, args...))
}

// begun reports whether a turn that has not ended is about an input. q.mu is held.
func (q *queue) begun(id string) bool {
	return q.world.inputs[id] || slices.ContainsFunc(q.stack, func(t interruptedTurn) bool { return t.inputs[id] })
}

func (q *queue) Pending(ctx context.Context) ([]*busv1.Event, error) {
	if _, err := q.world.Pending(ctx); err != nil {
		return nil, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(q.waiting), func(e *busv1.Event) bool { return q.begun(e.GetId()) }), nil
}

// Commit has an interruption refused as the kernel would: it takes the first
// waiting messages of a user that are answered at one place.
func (q *queue) Commit(ctx context.Context, effects ...sdk.Effect) ([]*busv1.EffectResult, error) {
	for _, e := range effects {
		p, err := e.Proto()
		if err != nil {
			return nil, err
		}
		if s := p.GetSteer(); s != nil {
			if err := q.mayInterrupt(s.GetInputs()); err != nil {
				return nil, err
			}
		}
	}
	return q.world.Commit(ctx, effects...)
}

func (q *queue) mayInterrupt(ids []string) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	var users []string
	for _, e := range q.waiting {
		in := q.inputs[e.GetId()]
		if in.Kind == contract.InputUser && !q.begun(e.GetId()) &&
			(len(users) == 0 || in.SharesTurn(q.inputs[users[0]])) {
			users = append(users, e.GetId())
		}
	}
	if len(ids) == 0 || len(ids) > len(users) || !slices.Equal(ids, users[:len(ids)]) {
		q.fail("%q interrupt a turn, and %q could", ids, users)
		return contract.ErrInvalid
	}
	steering := func(e *busv1.Event) bool { return slices.Contains(ids, e.GetId()) }
	first := slices.DeleteFunc(slices.Clone(q.waiting), func(e *busv1.Event) bool { return !steering(e) })
	q.waiting = slices.Concat(first, slices.DeleteFunc(q.waiting, steering))
	return nil
}

// order is the running turn as a model sees it: its inputs, the number of its
// answers, and which of its calls have run.
type order struct {
	about []string
	asked int
	calls map[string]string
	ran   map[string]bool
}

func orders(r *kernelv1.CompleteRequest) (open []*order) {
	for _, m := range r.GetMessages()[1:] {
		var top *order
		if len(open) > 0 {
			top = open[len(open)-1]
		}
		about := inputID.FindAllString(m.GetContent(), -1)
		switch {
		case m.GetRole() == "user" && (strings.HasPrefix(m.GetContent(), "[note") ||
			strings.HasPrefix(m.GetContent(), "[record") ||
			strings.HasPrefix(m.GetContent(), "[summary")):
		case m.GetRole() == "user" && top != nil && top.asked == 0:
			top.about = append(top.about, about...)
		case m.GetRole() == "user":
			open = append(open, &order{about: about, calls: map[string]string{}, ran: map[string]bool{}})
		case top == nil:
		case m.GetRole() == "assistant" && len(m.GetCalls()) == 0:
			open = open[:len(open)-1]
		case m.GetRole() == "assistant":
			top.asked++
			for _, c := range m.GetCalls() {
				top.calls[c.GetCallId()] = string(c.GetArguments())
			}
		case m.GetRole() == "tool":
			top.ran[top.calls[m.GetCallId()]] = !strings.Contains(m.GetContent(), contract.SkippedCall)
		}
	}
	return open
}

// answer is the model: two calls in each round, those first that were skipped.
func (q *queue) answer(_ context.Context, r *kernelv1.CompleteRequest, emit func(*sdk.Delta) error) error {
	if r.GetPurpose() == purposeSummary {
		return text("What was settled before.").emit(emit)
	}
	open := orders(r)
	if len(open) == 0 {
		q.fail("asked though all is answered: %q", contents(r))
		return contract.ErrInvalid
	}
	now := open[len(open)-1]
	recorded := 0
	q.mu.Lock()
	for _, row := range q.rows {
		if row.GetKind() == contract.EntryAnswer && row.GetTurn() == q.turn && q.turn != 0 {
			recorded++
		}
	}
	q.mu.Unlock()
	if recorded != now.asked {
		q.fail("asked for answer %d of the turn about %q, and %d are recorded", now.asked+1, now.about, recorded)
	}
	counts := map[string]int{}
	for _, m := range r.GetMessages()[1:] {
		if m.GetRole() == "user" && !strings.HasPrefix(m.GetContent(), "[note") {
			for _, id := range inputID.FindAllString(m.GetContent(), -1) {
				if counts[id]++; counts[id] > 1 {
					q.fail("%s is twice in a request", id)
				}
			}
		}
	}
	for round := range q.rounds[now.about[0]] {
		s := &said{}
		for i := range 2 {
			arguments := fmt.Sprintf(`{"n":"%s%d%d"}`, now.about[0], round, i)
			if !now.ran[arguments] {
				s.calls = append(s.calls, &busv1.Call{ProviderId: fmt.Sprint("p", i), Name: "notes__add",
					Arguments: []byte(arguments)})
			}
		}
		if len(s.calls) > 0 {
			return s.emit(emit)
		}
	}
	return text("About " + strings.Join(now.about, " ")).emit(emit)
}

// For any inputs and any deaths of the process: each input is answered
// once, together with none that is answered elsewhere, only users' messages
// interrupt, no call runs twice, and the model is asked once for each answer.
func TestEveryInputOfAQueueIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	seed.Check(t, func(t *rapid.T) {
		q := &queue{world: newWorld(), inputs: map[string]contract.AgentInput{}, rounds: map[string]int{}}
		q.tool("notes/add", false)
		q.model = q.answer
		var coming []*busv1.Event
		var due []int
		at := 0
		for i := range rapid.IntRange(1, 14).Draw(t, "inputs") {
			id := fmt.Sprintf("<i%d>", i)
			in := contract.AgentInput{
				Kind: rapid.SampledFrom([]string{contract.InputUser, contract.InputUser, contract.InputUser,
					contract.InputNotice, contract.InputRecord}).Draw(t, "kind"),
				Sender: "Anna", Text: id, ReplyTo: rapid.SampledFrom([]string{"h1", "h1", "h2"}).Draw(t, "place"),
				Person: rapid.SampledFrom([]string{"p1", "p1", "p1", "p2"}).Draw(t, "person"),
			}
			q.inputs[id], q.rounds[id] = in, rapid.SampledFrom([]int{0, 1, 2, 6}).Draw(t, "rounds")
			at += rapid.IntRange(0, 10).Draw(t, "pause")
			coming, due = append(coming, input(id, in)), append(due, at)
		}
		deaths := rapid.SliceOfN(rapid.IntRange(1, 200), 0, 4).Draw(t, "deaths")
		n := 0
		q.fault = func(string) bool {
			n++
			for len(coming) > 0 && due[0] <= n {
				q.waiting, coming, due = append(q.waiting, coming[0]), coming[1:], due[1:]
			}
			return slices.Contains(deaths, n)
		}
		agent := func() *Agent {
			a := New(Options{})
			a.start(q, "Assistant", &extensionv1.AgentSpec{MaxSteps: 100}, Plain{}, time.UTC, hclog.NewNullLogger())
			return a
		}
		a := agent()
		for q.world.inputs = map[string]bool{}; len(q.waiting)+len(coming) > 0; {
			if len(q.waiting) == 0 {
				q.waiting, coming, due = coming[:1], coming[1:], due[1:]
			}
			head := q.waiting[0]
			q.waiting = slices.Delete(slices.Clone(q.waiting), 0, 1)
			for tries := 0; ; tries++ {
				err := q.deliver(context.Background(), a, head)
				if err == nil {
					break
				}
				if q.wrong != nil || tries > len(deaths) {
					t.Fatalf("the turn of %s: %v; %q", head.GetId(), err, q.wrong)
				}
				a = agent()
			}
			q.waiting = slices.DeleteFunc(q.waiting, func(e *busv1.Event) bool { return slices.Contains(q.settled, e.GetId()) })
			if q.turn != 0 || len(q.stack) != 0 {
				t.Fatalf("%s is settled, but a turn is still open", head.GetId())
			}
		}
		q.check(t)
	})
}

func (q *queue) check(t *rapid.T) {
	for _, wrong := range q.wrong {
		t.Error(wrong)
	}
	answered := map[string]int{}
	for _, o := range q.outputs {
		var about []string
		for _, id := range inputID.FindAllString(o.Text, -1) {
			answered[id]++
			about = append(about, id)
			if first := q.inputs[about[0]]; id != about[0] && !q.inputs[id].SharesTurn(first) {
				t.Errorf("%q are answered together", about)
			}
		}
		if o.Outcome != contract.OutcomeOK {
			t.Errorf("a turn ended %s: %s", o.Outcome, o.Text)
		}
	}
	for id, in := range q.inputs {
		want := 1
		if in.Kind == contract.InputRecord {
			want = 0
		}
		if answered[id] != want {
			t.Errorf("%s, a %s, was answered %d times", id, in.Kind, answered[id])
		}
	}
	ran := map[string]int{}
	for _, call := range q.ran {
		if ran[call]++; ran[call] > 1 {
			t.Errorf("%s ran %d times", call, ran[call])
		}
	}
}
