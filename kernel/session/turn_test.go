package session_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
)

// world is a chat of Anna with the orchestrator on Telegram.
type world struct {
	*kerneltest.World
	telegram     *kerneltest.Channel
	orchestrator *kerneltest.Agent
}

func play(t *testing.T, do func(w world)) {
	t.Helper()
	kerneltest.Run(t, func(k *kerneltest.World) {
		w := world{World: k, telegram: k.Channel("telegram"), orchestrator: k.Agent("orchestrator")}
		w.telegram.Admits("anna")
		do(w)
	})
}

func (w world) turn(id int64) (turn *journal.Turn) {
	w.T.Helper()
	w.Read(func(r journal.Reader) (err error) {
		turn, err = r.Turn(id)
		return err
	})
	return turn
}

func (w world) call(id string) (c *journal.Call) {
	w.T.Helper()
	w.Read(func(r journal.Reader) (err error) {
		c, err = r.Call(journal.ParseCallID(id))
		return err
	})
	return c
}

// outputs is what was published as agent.output.
func (w world) outputs() (all []contract.AgentOutput) {
	w.T.Helper()
	for _, e := range w.Events(contract.TopicAgentOutput) {
		all = append(all, kerneltest.Decode[contract.AgentOutput](w.T, e))
	}
	return all
}

func TestATurnBeginsWithItsFirstRows(t *testing.T) {
	play(t, func(w world) {
		w.telegram.Says("anna", "hello")
		turn := w.orchestrator.Hears("hello")
		if got := w.Session("orchestrator", "chan:telegram:anna"); len(got.Stack) != 0 {
			t.Errorf("a turn has begun by itself: %+v", got)
		}
		turn.Asks([2]string{"core/list_channels", "{}"})
		s := w.Session("orchestrator", "chan:telegram:anna")
		if len(s.Stack) != 1 || s.HistorySeq != 2 {
			t.Fatalf("the session is %+v", s)
		}
		if begun := w.turn(s.Stack[0]); begun.ReplyTo != turn.Input.ReplyTo || begun.Outcome != "" || len(begun.Inputs) != 1 {
			t.Errorf("the turn is %+v", begun)
		}
		turn.Asks([2]string{"core/list_channels", "{}"}) // the same turn
		if s := w.Session("orchestrator", "chan:telegram:anna"); len(s.Stack) != 1 || s.HistorySeq != 3 {
			t.Errorf("the session is %+v", s)
		}
	})
}

func TestAResumedTurnGoesOn(t *testing.T) {
	play(t, func(w world) {
		w.telegram.Says("anna", "hello")
		turn := w.orchestrator.Hears("hello")
		call := turn.Asks([2]string{"core/list_channels", "{}"})[0]
		begun := w.Session("orchestrator", "chan:telegram:anna").Stack
		for _, interrupt := range []func(){w.Restart, func() { w.orchestrator.Stops(); w.orchestrator.Starts() }} {
			interrupt()
			turn = w.orchestrator.Hears("hello")
			c := turn.Delivery.GetTurn()
			if !c.GetResumed() || c.GetTurn() != begun[0] || c.GetHistorySeq() != 2 {
				t.Errorf("the turn is resumed with %v", c)
			}
		}
		if _, err := turn.Call(call); err != nil {
			t.Error(err)
		}
		turn.Answers("done")
		w.telegram.Shows("anna: done")
		if s := w.Session("orchestrator", "chan:telegram:anna"); len(s.Stack) != 0 {
			t.Errorf("the session is %+v", s)
		}
	})
}

func TestOnlyTheHolderWritesWhereItKnowsTheHistoryToEnd(t *testing.T) {
	play(t, func(w world) {
		w.telegram.Says("anna", "hello")
		turn := w.orchestrator.Hears("hello")
		other := w.Agent("other")
		w.telegram.Reports(contract.UserMessage{UserID: "anna", ConversationID: "elsewhere", Text: "hi", AgentID: "other"})
		elsewhere := other.Hears("hi")
		note := &busv1.Entry{Kind: contract.EntryNote, Text: "x"}
		token := turn.Delivery.GetToken()
		refused := []struct {
			name   string
			by     *kerneltest.Agent
			token  string
			effect *busv1.Effect
			want   error
		}{
			{"no lane", w.orchestrator, "", turn.Append(note), contract.ErrDenied},
			{"an unknown lane", w.orchestrator, "0123", turn.Append(note), contract.ErrStale},
			{"another's lane", other, token, turn.Append(note), contract.ErrStale},
			{"another session", other, elsewhere.Delivery.GetToken(), turn.Append(note), contract.ErrDenied},
			{"behind the end", w.orchestrator, token, kerneltest.AppendAt(turn.Session(), 1, note), contract.ErrConflict},
			{"before the end", w.orchestrator, token, kerneltest.AppendAt(turn.Session(), -1, note), contract.ErrConflict},
		}
		for _, r := range refused {
			if _, err := r.by.Commits(r.token, r.effect); !errors.Is(err, r.want) {
				t.Errorf("%s: %v, want %v", r.name, err, r.want)
			}
		}
		channel := w.telegram.Extension
		if _, err := channel.Commits("", turn.Append(note)); !errors.Is(err, contract.ErrDenied) {
			t.Errorf("a channel writes to a history: %v", err)
		}
		turn.Asks([2]string{"core/list_channels", "{}"})
		if _, err := w.orchestrator.Commits(
			token,
			kerneltest.AppendAt(turn.Session(), 0, note),
		); !errors.Is(
			err,
			contract.ErrConflict,
		) {
			t.Errorf("rows were written twice: %v", err)
		}
		if rows := w.History(turn.Session()); len(rows) != 2 {
			t.Errorf("the history is %q", rows)
		}
	})
}

func TestInputsOfOneTurn(t *testing.T) {
	play(t, func(w world) {
		w.orchestrator.Dies()
		for _, text := range []string{"one", "two", "three", "four"} {
			w.telegram.Says("anna", text)
		}
		tasks := w.Extension(bus.Actor{ID: "tasks", Effects: []string{"input"}})
		tasks.Must("", kerneltest.Input("orchestrator", "chan:telegram:anna", contract.InputNotice, "a notice"))
		w.orchestrator.Starts()
		turn := w.orchestrator.Hears("one")
		inputs := w.Events(contract.TopicAgentInput + "orchestrator")
		row := func(i int) *busv1.Entry {
			return kerneltest.Row(inputs[i].GetId(), kerneltest.Decode[contract.AgentInput](t, inputs[i]))
		}
		refused := []struct {
			name string
			rows []*busv1.Entry
			want error
		}{
			{"a gap", []*busv1.Entry{row(0), row(2)}, contract.ErrConflict},
			{"another order", []*busv1.Entry{row(0), row(2), row(1)}, contract.ErrConflict},
			{"one that is not a user's", []*busv1.Entry{row(0), row(1), row(2), row(3), row(4)}, contract.ErrInvalid},
			{
				"one that does not exist",
				[]*busv1.Entry{row(0), {Kind: contract.EntryInput, Input: "e999"}},
				contract.ErrConflict,
			},
		}
		for _, r := range refused {
			if _, err := w.orchestrator.Commits(turn.Delivery.GetToken(), turn.Append(r.rows...)); !errors.Is(err, r.want) {
				t.Errorf("%s: %v, want %v", r.name, err, r.want)
			}
		}
		w.orchestrator.Must(turn.Delivery.GetToken(), turn.Append(row(0), row(1), row(2)))
		w.Restart()
		turn = w.orchestrator.Hears("one")
		if !turn.Delivery.GetTurn().GetResumed() {
			t.Error("the turn is not resumed")
		}
		w.orchestrator.Acks(turn.Delivery, turn.Output(contract.OutcomeOK, "one to three"))
		w.orchestrator.Hears("four").Answers("four")
		w.orchestrator.Hears("a notice").Answers("")
		w.orchestrator.HearsNothing()
		w.telegram.Shows("anna: one to three", "anna: four")
		if ended := w.turn(
			1,
		); !slices.Equal(
			ended.Inputs,
			[]int64{inputs[0].GetSeq(), inputs[1].GetSeq(), inputs[2].GetSeq()},
		) {
			t.Errorf("the turn is %+v", ended)
		}
	})
}

// After an outage what came between a person's messages keeps its place, and
// they are answered together.
func TestInputsOfOneTurnWithOthersBetweenThem(t *testing.T) {
	play(t, func(w world) {
		w.orchestrator.Dies()
		tasks := w.Extension(bus.Actor{ID: "tasks", Effects: []string{"input"}})
		w.telegram.Says("anna", "one")
		for i, kind := range []string{contract.InputNotice, contract.InputRecord} {
			tasks.Must("", kerneltest.Input("orchestrator", "chan:telegram:anna", kind, kind))
			w.telegram.Says("anna", []string{"two", "three"}[i])
		}
		w.orchestrator.Starts()
		turn := w.orchestrator.Hears("one")
		inputs := w.Events(contract.TopicAgentInput + "orchestrator")
		row := func(i int) *busv1.Entry {
			return kerneltest.Row(inputs[i].GetId(), kerneltest.Decode[contract.AgentInput](t, inputs[i]))
		}
		for name, rows := range map[string][]*busv1.Entry{
			"one is left out": {row(0), row(4)},
			"a notice":        {row(0), row(1), row(2)},
		} {
			if _, err := w.orchestrator.Commits(turn.Delivery.GetToken(), turn.Append(rows...)); err == nil {
				t.Errorf("%s: they are a turn", name)
			}
		}
		w.orchestrator.Acks(turn.Delivery, turn.Append(row(0), row(2), row(4)), turn.Output(contract.OutcomeOK, "to all"))
		w.orchestrator.Hears(contract.InputNotice).Answers("noted")
		w.orchestrator.HearsRecord(contract.InputRecord)
		w.orchestrator.HearsNothing()
		w.telegram.Shows("anna: to all", "anna: noted")
	})
}

func TestInputsOfAnotherSessionAreAnotherTurn(t *testing.T) {
	play(t, func(w world) {
		w.orchestrator.Dies()
		for _, place := range []string{"one", "two"} {
			w.telegram.Reports(contract.UserMessage{UserID: "anna", ConversationID: place, Text: place})
		}
		w.orchestrator.Starts()
		turn := w.orchestrator.HearsNext()
		var rows []*busv1.Entry
		for _, e := range w.Events(contract.TopicAgentInput + "orchestrator") {
			rows = append(rows, kerneltest.Row(e.GetId(), kerneltest.Decode[contract.AgentInput](t, e)))
		}
		if _, err := w.orchestrator.Commits(
			turn.Delivery.GetToken(),
			turn.Append(rows...),
		); !errors.Is(
			err,
			contract.ErrConflict,
		) {
			t.Errorf("an input of another session is part of the turn: %v", err)
		}
	})
}

// The kernel writes a record down by itself where nothing is to be done, and only
// there: else the agent would not know its own history.
func TestARecordForAnIdleSessionIsWrittenAtOnce(t *testing.T) {
	play(t, func(w world) {
		x := w.Extension(bus.Actor{ID: "x", Effects: []string{"session.ensure", "input"}})
		in := kerneltest.Input("orchestrator", "k", contract.InputRecord, "one")
		in.GetInput().DedupeKey = "once"
		x.Must("", kerneltest.Ensure("orchestrator", "k"), in)
		if r := x.Must("", in); !r[0].GetDuplicate() {
			t.Error("the same record was written twice")
		}
		x.Must(
			"",
			kerneltest.Input("orchestrator", "k", contract.InputRecord, "two"),
			kerneltest.Input("orchestrator", "k", contract.InputMessage, "three"),
			kerneltest.Input("orchestrator", "k", contract.InputRecord, "four"),
		)
		id := w.Session("orchestrator", "k").ID
		if rows := w.History(id); !slices.Equal(rows, []string{"input: one", "input: two"}) {
			t.Errorf("the history is %q", rows)
		}
		three := w.orchestrator.Hears("three")
		if seq := three.Delivery.GetTurn().GetHistorySeq(); seq != 2 {
			t.Errorf("the agent is told of %d rows", seq)
		}
		three.Answers("yes")
		record := w.orchestrator.HearsNext()
		x.Must("", kerneltest.Input("orchestrator", "k", contract.InputRecord, "five")) // order is kept
		if rows := w.History(id); !strings.HasSuffix(rows[len(rows)-1], "yes") {
			t.Errorf("the history is %q", rows)
		}
		w.orchestrator.Acks(record.Delivery, record.Append(record.InputRow()))
		if five := w.orchestrator.HearsNext(); five.Input.Text != "five" {
			t.Errorf("the agent hears %+v", five.Input)
		}
	})
}

func TestARecordHasNoTurn(t *testing.T) {
	play(t, func(w world) {
		message := w.telegram.Says("anna", "hello")
		hello := w.orchestrator.Hears("hello")
		w.telegram.Edits("anna", message, "hello!")
		hello.Answers("hi")
		record := w.orchestrator.HearsNext()
		call := &busv1.Entry{Kind: contract.EntryAnswer, Calls: []*busv1.Call{{Name: "core/list_channels"}}}
		if _, err := w.orchestrator.Commits(
			record.Delivery.GetToken(),
			record.Append(call),
		); !errors.Is(
			err,
			contract.ErrInvalid,
		) {
			t.Errorf("a record calls a tool: %v", err)
		}
		w.orchestrator.Acks(record.Delivery, record.Append(record.InputRow()))
		if s := w.Session("orchestrator", "chan:telegram:anna"); len(s.Stack) != 0 || s.HistorySeq != 3 {
			t.Errorf("the session is %+v", s)
		}
		if got := w.outputs(); len(got) != 1 {
			t.Errorf("outputs: %+v", got)
		}
	})
}

func TestAnOutputComesWithTheAcknowledgement(t *testing.T) {
	play(t, func(w world) {
		w.telegram.Says("anna", "hello")
		turn := w.orchestrator.Hears("hello")
		token := turn.Delivery.GetToken()
		if _, err := w.orchestrator.Commits(
			token,
			turn.Append(turn.InputRow()),
			turn.Output(contract.OutcomeOK, "hi"),
		); !errors.Is(
			err,
			contract.ErrInvalid,
		) {
			t.Errorf("an output without an acknowledgement: %v", err)
		}
		if _, err := w.orchestrator.Commits("", turn.Output(contract.OutcomeOK, "hi")); !errors.Is(err, contract.ErrDenied) {
			t.Errorf("an output without a lane: %v", err)
		}
		if _, err := w.telegram.Commits("", turn.Output(contract.OutcomeOK, "hi")); !errors.Is(err, contract.ErrDenied) {
			t.Errorf("an output of a channel: %v", err)
		}
		w.telegram.IsSilent()
		if rows := w.History(turn.Session()); len(rows) != 0 {
			t.Errorf("the history is %q", rows)
		}
		turn.Answers("hi")
		w.telegram.Shows("anna: hi")
	})
}

func TestAnAcknowledgementWithoutAnOutputIsADeadTurn(t *testing.T) {
	play(t, func(w world) {
		w.telegram.Says("anna", "hello")
		turn := w.orchestrator.Hears("hello")
		w.orchestrator.Acks(turn.Delivery)
		w.telegram.ShowsOne("I couldn't answer that", "agent.output")
		w.telegram.Says("anna", "again")
		turn = w.orchestrator.Hears("again")
		turn.Asks([2]string{"core/list_channels", "{}"})
		w.orchestrator.Acks(turn.Delivery)
		w.telegram.ShowsOne("I couldn't answer that")
		if s := w.Session("orchestrator", "chan:telegram:anna"); len(s.Stack) != 0 {
			t.Errorf("the turn goes on: %+v", s)
		}
	})
}

func TestAnOutcomeThatIsNoneIsADeadTurn(t *testing.T) {
	play(t, func(w world) {
		w.telegram.Says("anna", "hello")
		w.orchestrator.Hears("hello").Ends("splendid", "hi")
		w.telegram.ShowsOne("I couldn't answer that", "splendid")
		w.telegram.Says("anna", "again")
		w.orchestrator.Hears("again").Answers("hi")
		w.telegram.Shows("anna: hi")
	})
}

func TestWhatTheRunLoopIsTold(t *testing.T) {
	play(t, func(w world) {
		w.Know(func(s *directory.Snapshot) {
			s.Location, s.ToolsEtag, s.ChannelsEtag = time.FixedZone("Europe/Berlin", 3600), "tools1", "channels1"
		})
		w.telegram.Says("anna", "hello")
		c := w.orchestrator.Hears("hello").Delivery.GetTurn()
		if c.GetChannel() != "telegram" || c.GetChannelName() != "Telegram" || c.GetTimezone() != "Europe/Berlin" || c.GetToolsEtag() != "tools1" ||
			c.GetChannelsEtag() != "channels1" || c.GetTurn() != 0 || c.GetResumed() ||
			c.GetGroup() {
			t.Errorf("the context is %v", c)
		}
	})
}

// An acknowledgement ends one turn, once: what stands behind its output would
// begin another that nobody ends.
func TestNothingFollowsTheOutputOfATurn(t *testing.T) {
	for name, behind := range map[string]func(*kerneltest.Turn) *busv1.Effect{
		"a row":          func(turn *kerneltest.Turn) *busv1.Effect { return turn.Append(turn.InputRow()) },
		"another output": func(turn *kerneltest.Turn) *busv1.Effect { return turn.Output(contract.OutcomeOK, "hi again") },
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w world) {
				w.telegram.Says("anna", "hello")
				turn := w.orchestrator.Hears("hello")
				w.orchestrator.Acks(turn.Delivery, turn.Output(contract.OutcomeOK, "hi"), behind(turn))
				w.telegram.ShowsOne("I couldn't answer that")
				w.telegram.Says("anna", "again")
				w.orchestrator.Hears("again").Answers("yes")
				w.telegram.Shows("anna: yes")
				if s := w.Session("orchestrator", "chan:telegram:anna"); len(s.Stack) != 0 {
					t.Errorf("the session is %+v", s)
				}
			})
		})
	}
}

func TestWhoDropsAnInputDoesNotAnswerIt(t *testing.T) {
	play(t, func(w world) {
		w.telegram.Says("anna", "hello")
		turn := w.orchestrator.Hears("hello")
		w.orchestrator.Outcome(
			turn.Delivery,
			busv1.Outcome_KIND_DROP,
			"no",
			turn.Append(turn.InputRow()),
			turn.Output(contract.OutcomeError, "I cannot."),
		)
		w.telegram.Shows("anna: I cannot.")
		if got := w.outputs(); len(got) != 1 {
			t.Errorf("outputs: %+v", got)
		}
	})
}
