package session

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/people"
)

var kinds = []string{
	contract.InputUser, contract.InputTask, contract.InputMessage, contract.InputResult, contract.InputNotice,
	contract.InputRecord,
}

// Open returns the session (agent, key), creating it with what init sets when
// it does not exist.
func (st *Store) Open(tx *bus.Tx, agent, key string, init func(*journal.Session)) (*journal.Session, error) {
	s, err := tx.SessionByKey(agent, key)
	if err != nil || s != nil {
		return s, err
	}
	s = &journal.Session{Agent: agent, Key: key, CreatedAt: tx.Now, ActiveAt: tx.Now}
	init(s)
	return s, tx.PutSession(s)
}

// ensure applies session.ensure. An outbound of kind extension is the extension that
// makes the session.
func (st *Store) ensure(tx *bus.Tx, effect *busv1.Effect) (*busv1.EffectResult, error) {
	e := effect.GetSessionEnsure()
	if st.directory.Current().Agent(e.GetAgent()) == nil {
		return nil, fmt.Errorf("%w: there is no agent %q", contract.ErrNotFound, e.GetAgent())
	}
	switch kind, _, _ := strings.Cut(e.GetKey(), ":"); {
	case e.GetKey() == "":
		return nil, fmt.Errorf("%w: a session needs a key", contract.ErrInvalid)
	case kind == "chan", kind == "job":
		return nil, fmt.Errorf("%w: sessions with keys %s:... are made by the kernel alone", contract.ErrDenied, kind)
	}
	call := callOf(e.GetKey())
	if call != 0 && (tx.Lease == nil || tx.Lease.Call != call) {
		return nil, fmt.Errorf("%w: a session with the key %q works for the call %s: only the tool of that call can make it",
			contract.ErrDenied, e.GetKey(), journal.CallID(call))
	}
	kind, target := e.GetOutbound().GetKind(), e.GetOutbound().GetTarget()
	if kind == busv1.Outbound_KIND_EXTENSION {
		target = tx.Actor.ID
	}
	within, err := withinOf(tx, e.GetWithin())
	if err != nil {
		return nil, err
	}
	s, err := st.Open(tx, e.GetAgent(), e.GetKey(), func(s *journal.Session) {
		s.OutboundKind, s.OutboundTarget, s.Group, s.Chain = int32(kind), target, within.Group, e.GetChain()
		s.Title, s.Within = e.GetTitle(), within.ID
	})
	if err == nil && e.GetTitle() != "" && e.GetTitle() != s.Title {
		s.Title = e.GetTitle()
		err = tx.PutSession(s)
	}
	if err == nil && call != 0 {
		err = st.assign(tx, s, call)
	}
	if err != nil {
		return nil, err
	}
	return &busv1.EffectResult{Session: journal.SessionID(s.ID)}, nil
}

// withinOf returns the session in whose conversation one is made: the named one, or that
// of the lane if its group may use only what is its own. Otherwise it is empty.
func withinOf(tx *bus.Tx, named string) (*journal.Session, error) {
	if named != "" {
		s, err := tx.Session(journal.ParseSessionID(named))
		if err == nil && s == nil {
			err = fmt.Errorf("%w: there is no session %q to make one within", contract.ErrNotFound, named)
		}
		return s, err
	}
	if tx.Lease != nil && tx.Lease.Session != 0 {
		s, err := tx.Session(tx.Lease.Session)
		if err != nil || s == nil {
			return &journal.Session{}, err
		}
		if p, err := Principal(tx, s, contract.Principal{}); p.Confined || err != nil {
			return s, err
		}
	}
	return &journal.Session{}, nil
}

// named returns the session with an id or, without one, with an agent and a key; nil
// if there is none.
func named(r journal.Reader, id, agent, key string) (*journal.Session, error) {
	if id != "" {
		return r.Session(journal.ParseSessionID(id))
	}
	return r.SessionByKey(agent, key)
}

// input applies input.
func (st *Store) input(tx *bus.Tx, effect *busv1.Effect) (*busv1.EffectResult, error) {
	in := effect.GetInput()
	s, err := named(tx, in.GetSession(), in.GetAgent(), in.GetKey())
	switch {
	case err != nil:
		return nil, err
	case s == nil && in.GetIfExists():
		return &busv1.EffectResult{}, nil
	case s == nil:
		return nil, fmt.Errorf("%w: there is no session %q; make it with session.ensure first", contract.ErrNotFound,
			in.GetSession()+in.GetKey())
	case !slices.Contains(kinds, in.GetKind()):
		return nil, fmt.Errorf("%w: %q is no kind of input: one of %v", contract.ErrInvalid, in.GetKind(), kinds)
	case in.GetKind() == contract.InputUser:
		return nil, fmt.Errorf("%w: an input of a user comes from a channel alone", contract.ErrDenied)
	}
	payload := contract.AgentInput{Kind: in.GetKind(), Sender: in.GetSender(), Text: in.GetText(),
		ReplyTo: in.GetReplyTo(), Thread: in.GetThread(), Person: in.GetPerson()}
	if payload.Person == "" && tx.Lease != nil && tx.Lease.Session != 0 {
		payload.Person = InputOf(tx.Lease.Event).Person
	}
	if len(in.GetMeta()) > 0 {
		if err := json.Unmarshal(in.GetMeta(), &payload.Meta); err != nil {
			return nil, fmt.Errorf("%w: the meta of an input is a JSON object: %w", contract.ErrInvalid, err)
		}
		if err := ownContext(tx.Actor.ID, payload.Meta); err != nil {
			return nil, err
		}
	}
	dedupe := ""
	if in.GetDedupeKey() != "" {
		dedupe = bus.InputDedupe(tx.Actor.ID, in.GetDedupeKey())
	}
	e, duplicate, err := st.queue(tx, s, payload, dedupe)
	if err == nil && !duplicate {
		err = keepBlobs(tx, s.ID, in.GetBlobs())
	}
	return &busv1.EffectResult{EventId: e.GetId(), Duplicate: duplicate, Session: journal.SessionID(s.ID)}, err
}

// ownContext refuses a context in the name of another extension's tools.
func ownContext(extension string, meta map[string]any) error {
	texts, _ := meta[contract.MetaContext].(map[string]any)
	for tool := range texts {
		if !strings.HasPrefix(tool, extension+"/") {
			return fmt.Errorf("%w: %q gives a context in the name of %q: only its own tools, %s/..., speak for it",
				contract.ErrDenied, extension, tool, extension)
		}
	}
	return nil
}

// Queue queues an input of a session. A user's message begins a chain of events,
// so the limit of turns does not apply to it; a record has no turn.
func (st *Store) Queue(tx *bus.Tx, s *journal.Session, in contract.AgentInput) error {
	_, _, err := st.queue(tx, s, in, "")
	return err
}

// Record queues a record of what the kernel did, which the agent of a session reads
// later.
func (st *Store) Record(tx *bus.Tx, s *journal.Session, text string, attachments []contract.Attachment) error {
	return st.Queue(tx, s, contract.AgentInput{
		Kind: contract.InputRecord, Sender: "switchboard", Text: text, Attachments: attachments,
	})
}

// queue is Queue for an input with a dedupe key; with one that was used before, it
// returns the earlier input.
func (st *Store) queue(
	tx *bus.Tx, s *journal.Session, in contract.AgentInput, dedupe string,
) (*busv1.Event, bool, error) {
	e, err := st.event(s, in)
	if err != nil {
		return nil, false, err
	}
	e.DedupeKey = dedupe
	if in.Kind == contract.InputRecord {
		duplicate, err := st.record(tx, s, e, in)
		return e, duplicate, err
	}
	duplicate, err := tx.Accept(e)
	if err == nil && !duplicate {
		err = keepBlobs(tx, s.ID, contract.BlobsOf(in.Attachments))
	}
	if in.Kind == contract.InputUser {
		tx.After(func() { st.calls.Interrupt(s.ID) })
	}
	if err != nil || duplicate || in.Kind == contract.InputUser {
		return e, duplicate, err
	}
	closed, err := isClosed(tx, s)
	if closed && err == nil {
		return e, false, st.refuse(tx, s, e, in, contract.AgentOutput{Outcome: contract.OutcomeCancelled}, journal.Done,
			"its conversation was closed")
	}
	over, text, err := st.Capped(tx, chain(s, e), in.Language)
	if over && err == nil {
		err = st.refuse(tx, s, e, in, contract.AgentOutput{Outcome: contract.OutcomeCapped, Text: text}, journal.Dead,
			fmt.Sprintf("the turns that followed from %s are used up", e.GetCorrelationId()))
	}
	return e, false, err
}

// keepBlobs lets a session keep files.
func keepBlobs(tx *bus.Tx, session int64, hashes []string) error {
	return tx.KeepBlobs(journal.Keeper{Kind: journal.KeptBySession, ID: session}, hashes)
}

// isClosed reports whether a session is one of a conversation that was closed, or works
// for one: its agent hears nothing any more.
func isClosed(r journal.Reader, s *journal.Session) (bool, error) {
	s, err := outermost(r, s)
	return s != nil && s.Conversation != 0 && s.OutboundKind == directory.OutboundNowhere, err
}

// record writes a record into the history of an idle session. A record for a busy one
// waits for its agent, which writes the history.
func (st *Store) record(
	tx *bus.Tx, s *journal.Session, e *busv1.Event, in contract.AgentInput,
) (duplicate bool, err error) {
	free := len(s.Stack) == 0
	if free {
		waiting, _, err := st.Waiting(tx, s, 1)
		if err != nil {
			return false, err
		}
		free = len(waiting) == 0
	}
	if duplicate, err = tx.Accept(e); err != nil || duplicate || !free {
		return duplicate, err
	}
	if err := tx.SettleAll(e.GetSeq(), journal.Done, "recorded"); err != nil {
		return false, err
	}
	_, err = st.write(tx, s, 0, []*busv1.Entry{inputRow(e, in)})
	return false, err
}

// inputRow returns the history row of an input.
func inputRow(e *busv1.Event, in contract.AgentInput) *busv1.Entry {
	return &busv1.Entry{Kind: contract.EntryInput, Text: in.Text, Sender: in.Sender, Input: e.GetId(),
		InputKind: in.Kind, Thread: in.Thread, ForwardedFrom: in.ForwardedFrom, Quote: in.Quote.Row()}
}

// Replace replaces an input that no handler has taken and no turn has begun with. It
// returns false if it is too late.
func (st *Store) Replace(tx *bus.Tx, s *journal.Session, old journal.Delivery, in contract.AgentInput) (bool, error) {
	if begun, err := st.begun(tx, s); err != nil || slices.Contains(begun, old.Seq) {
		return false, err
	}
	e, err := st.event(s, in)
	if err != nil {
		return false, err
	}
	return tx.Replace(old, e)
}

func (st *Store) event(s *journal.Session, in contract.AgentInput) (*busv1.Event, error) {
	in.Session = journal.SessionID(s.ID)
	in.Group = s.Group
	payload, err := json.Marshal(in)
	if err != nil {
		return nil, fmt.Errorf("input of session %s: %w", in.Session, err)
	}
	return &busv1.Event{Topic: contract.TopicAgentInput + s.Agent, Key: in.Session, Source: contract.KernelSource,
		Payload: payload}, nil
}

// InputOf decodes the input in an event; it is empty if that fails.
func InputOf(e *busv1.Event) (in contract.AgentInput) {
	if json.Unmarshal(e.GetPayload(), &in) != nil {
		return contract.AgentInput{}
	}
	return in
}

// begins reports whether an input begins a turn. A record does not, and neither does
// one that cannot be decoded.
func begins(in contract.AgentInput) bool { return in.Kind != "" && in.Kind != contract.InputRecord }

// Waiting returns the inputs of a session that are not settled, in order, with
// their deliveries.
func (st *Store) Waiting(tx *bus.Tx, s *journal.Session, limit int) ([]journal.Delivery, []*busv1.Event, error) {
	return tx.Peek(s.Agent, contract.TopicAgentInput+s.Agent, journal.SessionID(s.ID), limit)
}

// takeBack takes the lane of a session from its holder, as Tx.TakeBack does.
func takeBack(tx *bus.Tx, s *journal.Session) (*busv1.Event, error) {
	return tx.TakeBack(s.Agent, contract.TopicAgentInput+s.Agent, journal.SessionID(s.ID))
}

// context returns what the run loop needs to begin or resume the turn of an input.
func (st *Store) context(r journal.Reader, e *busv1.Event) (*busv1.TurnContext, error) {
	id := journal.ParseSessionID(e.GetKey())
	c := &busv1.TurnContext{Session: e.GetKey()}
	s, err := r.Session(id)
	if err != nil || s == nil {
		return c, err
	}
	dir := st.directory.Current()
	c.HistorySeq, c.Group, c.HistoryEpoch = s.HistorySeq, s.Group, st.epoch(id)
	c.ToolsEtag, c.ChannelsEtag = dir.ToolsEtag, dir.ChannelsEtag
	if n := len(s.Stack); n > 0 {
		c.Turn, c.Resumed = s.Stack[n-1], true
		if n > 1 {
			c.Below = s.Stack[n-2]
		}
		turn, err := r.Turn(c.GetTurn())
		if err != nil {
			return nil, err
		}
		c.Interruptions = int32(turn.Interrupted)
	}
	if s.OutboundKind == directory.OutboundExtension {
		c.Extension = s.OutboundTarget
	}
	if s.Conversation != 0 {
		place, err := r.Conversation(s.Conversation)
		if err != nil {
			return nil, err
		}
		if place != nil {
			c.Channel, c.ChannelName = place.Channel, place.Channel
			if channel := dir.Channel(place.Channel); channel != nil {
				c.ChannelName = channel.Name
			}
		}
	}
	c.Timezone, err = people.Timezone(r, InputOf(e).Person, dir.Location)
	return c, err
}
