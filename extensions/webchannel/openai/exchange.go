package openaiapi

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/extensions/webchannel/chat"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
)

// exchange is one message and its answer.
type exchange struct {
	s     *server
	v     door.Visitor
	model string
	place place
	line  chat.Line // of the message
	leave func()    // ends following the turn
}

// answer is what an agent said.
type answer struct {
	text    string
	outcome string // see contract.OutcomeOK; empty: no agent answered, but the assistant itself
	usage   *usage // nil: not known
}

const maxKey = 255 // bytes of an Idempotency-Key

// say says the last message of a request. The caller calls leave.
func (s *server) say(w http.ResponseWriter, r *http.Request, v door.Visitor, q request) (x *exchange, err error) {
	ctx := r.Context()
	if err := s.agent(ctx, q.model); err != nil {
		return nil, err
	}
	last := len(q.said) - 1
	for last >= 0 && (q.said[last].role == "system" || q.said[last].role == "developer") {
		last--
	}
	switch {
	case last < 0 || q.said[last].role != "user":
		return nil, invalid("messages", "The last message has to be the user's.")
	case strings.TrimSpace(q.said[last].text) == "" && len(q.said[last].files) == 0:
		return nil, invalid("messages", "The last message is empty.")
	}
	key := r.Header.Get("Idempotency-Key")
	if len(key) > maxKey {
		return nil, invalid("Idempotency-Key", "The key has more than %d bytes.", maxKey)
	}
	if q.conversation == "" {
		q.conversation = r.Header.Get(headerConversation)
	}
	to, err := s.placeOf(ctx, v, q, key)
	if err != nil {
		return nil, err
	}
	message := q.said[last]
	files, err := s.upload(ctx, v, message.files)
	if err != nil {
		return nil, err
	}
	earlier := append(append([]said{}, q.said[:last]...), q.said[last+1:]...)
	unknown, err := s.note(ctx, to, earlier, message)
	if err != nil {
		return nil, err
	}
	x = &exchange{s: s, v: v, model: q.model, place: to}
	if x.leave, err = s.turns.follow(ctx); err != nil {
		return nil, err
	}
	x.line, err = s.Chat.Say(ctx, v, chat.Message{
		ID: to.message, Conversation: to.record.Name, Text: message.text, Agent: q.model, Attachments: files,
		Record: tell(unknown),
	})
	if err == nil && x.line.Text != message.text {
		err = &fault{status: http.StatusConflict, code: "idempotency_key_reused", param: "Idempotency-Key",
			text: "This Idempotency-Key came with another message before: use a new one for each message."}
	}
	if err != nil {
		x.leave()
		return nil, err
	}
	w.Header().Set(headerConversation, to.short)
	if x.line.Event != "" {
		w.Header().Set("X-Request-Id", x.line.Event) // as switchboard trace takes it
	}
	return x, nil
}

// settle is how long the events of a message may be behind the message.
const settle = 250 * time.Millisecond

// wait waits for the answer, and calls show with what there is of it so far.
func (x *exchange) wait(ctx context.Context, show func(text string) error) (answer, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	frames, ended := make(chan chat.Frame), make(chan error, 1)
	go func() {
		for f, err := range x.s.Chat.Follow(ctx, x.v, x.place.record.Name, x.line.Seq) {
			if err != nil {
				ended <- err
				return
			}
			select {
			case frames <- f:
			case <-ctx.Done():
				return
			}
		}
		ended <- ctx.Err()
	}()
	w := &waiting{exchange: x, show: show}
	if x.line.Event != "" {
		var err error
		if w.turn, err = x.s.turns.of(ctx, x.line.Event); err != nil {
			return answer{}, err
		}
	}
	for {
		now := state{}
		if w.turn != nil {
			now = x.s.turns.look(w.turn)
		}
		if done, a := w.over(now); done {
			return a, now.err
		}
		var err error
		select {
		case f := <-frames:
			err = w.frame(ctx, f)
		case <-now.changed:
			now = x.s.turns.look(w.turn)
			err = now.err
		case err = <-ended:
		}
		if err != nil {
			return answer{}, err
		}
		if w.answer != nil {
			return *w.answer, nil
		}
	}
}

// waiting is the state of waiting for an answer.
type waiting struct {
	*exchange
	turn   *turn // nil: the event of the message isn't known
	show   func(string) error
	before string // what was sent before the answer, such as a question
	loose  []chat.Line
	answer *answer
}

// over reports whether the turn has ended without a text, or with one that was shown.
func (w *waiting) over(now state) (bool, answer) {
	if now.output == nil {
		return false, answer{}
	}
	if strings.TrimSpace(now.output.Text) == "" && len(w.loose) == 0 {
		return true, answer{text: w.before, outcome: now.output.Outcome, usage: now.usage}
	}
	for _, l := range w.loose {
		if w.s.turns.ends(w.turn, l.ID) {
			w.before = strings.TrimSuffix(w.before, textOf(l))
			w.finish(l)
			return true, *w.answer
		}
	}
	return false, answer{}
}

// frame handles what happens in the conversation.
func (w *waiting) frame(ctx context.Context, f chat.Frame) error {
	if d := f.Draft; d != nil {
		if d.ReplyTo != w.line.ID || d.Text == "" {
			return nil
		}
		return w.show(join(w.before, d.Text))
	}
	l := f.Line
	switch {
	case l.Mine, l.Notice && l.ReplyTo != w.line.ID:
		return nil
	case w.turn == nil && l.ReplyTo == w.line.ID, w.turn != nil && w.s.turns.ends(w.turn, l.ID):
		w.finish(*l)
		return nil
	case w.turn == nil:
		return nil
	}
	known, err := w.settled(ctx, *l)
	switch {
	case err != nil:
		return err
	case known:
		w.finish(*l)
	case l.ReplyTo == w.line.ID: // what a tool has sent, or a question
		w.before = join(w.before, textOf(*l))
		w.loose = append(w.loose, *l)
		return w.show(w.before)
	}
	return nil
}

// settled reports whether a line, of which the events say nothing yet, ends the exchange:
// they may be behind, or one turn has answered this message together with another one.
func (w *waiting) settled(ctx context.Context, l chat.Line) (bool, error) {
	timer := time.NewTimer(settle)
	defer timer.Stop()
	for {
		now := w.s.turns.look(w.turn)
		if w.s.turns.ends(w.turn, l.ID) {
			return true, nil
		}
		if l.ReplyTo != w.line.ID && now.output == nil && now.input != "" {
			return w.together(ctx, now.input)
		}
		select {
		case <-now.changed:
		case <-timer.C:
			return false, nil
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// together reports whether an input was settled by the turn of another one.
func (w *waiting) together(ctx context.Context, input string) (bool, error) {
	rows, err := w.s.Read.Deliveries(ctx, &adminv1.DeliveriesRequest{Events: []string{input}})
	for err == nil {
		var d *adminv1.Delivery
		if d, err = rows.Recv(); err == nil && d.GetState() == "done" {
			return true, nil
		}
	}
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	return false, nil
}

// finish ends the exchange with a line.
func (w *waiting) finish(l chat.Line) {
	a := answer{text: join(w.before, textOf(l))}
	if w.turn != nil {
		now := w.s.turns.look(w.turn)
		if a.usage = now.usage; now.output != nil {
			a.outcome = now.output.Outcome
		}
	}
	w.answer = &a
}

func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n\n" + b
}

// textOf is a line as text.
func textOf(l chat.Line) string {
	text := l.Text
	for _, a := range l.Attachments {
		text = strings.TrimSpace(text + "\n" + a.Reference())
	}
	for _, a := range l.Actions {
		text += fmt.Sprintf("\n%s: %s", a.Label, a.Command)
	}
	return text
}

// fault is the protocol's error of a turn that failed; nil: it didn't.
func (a answer) fault() *fault {
	switch a.outcome {
	case contract.OutcomeError, contract.OutcomeDead:
		return &fault{status: http.StatusBadGateway, code: "agent_failed", text: a.text}
	case contract.OutcomeTimeout:
		return &fault{status: http.StatusGatewayTimeout, code: "agent_timeout", text: a.text}
	case contract.OutcomeCancelled:
		return &fault{status: http.StatusConflict, code: "turn_stopped", text: cmpText(a.text, "The turn was stopped.")}
	}
	return nil
}

func cmpText(text, otherwise string) string {
	if strings.TrimSpace(text) == "" {
		return otherwise
	}
	return text
}
