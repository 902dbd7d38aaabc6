package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// DelegateTool is the tool whose calls have another agent work for them. Such a
// call has one session, whose key names it and whose outbound it is: what the
// agent says there finishes the call in the commit in which it says it, also if
// no agent waits at that moment. A call that ends earlier, with its turn, stops
// the session's work in that very commit.
const DelegateTool = "core/delegate_task"

// maxDelegation is how many agents may stand in a row, each working for the one
// before it.
const maxDelegation = 8

// Delegated is the call that a session works for; 0: none.
func Delegated(s *journal.Session) int64 { return delegated(s.Key) }

func delegated(key string) int64 {
	id, ok := strings.CutPrefix(key, "task:")
	if !ok {
		return 0
	}
	return journal.ParseCallID(id)
}

// Delegation is the result of a call of DelegateTool, as the model reads it.
type Delegation struct {
	Agent   string `json:"agent"`
	Success bool   `json:"success"`
	Output  string `json:"output,omitempty"`
	Error   string `json:"error,omitempty"`
	Outcome string `json:"outcome"`
}

// working is the outcome of a delegation that has none yet.
const working = "working"

// Delegate has an agent work for an open call. Others can read what it does if
// they can read the conversation of the call.
func (st *Store) Delegate(tx *bus.Tx, id int64, agent string, in contract.AgentInput) error {
	c, err := st.open(tx, id)
	if err != nil {
		return err
	}
	parent, err := tx.Session(c.Session)
	if err != nil {
		return err
	}
	if deep, err := tooDeep(tx, parent); deep || err != nil {
		if err == nil {
			err = fmt.Errorf("%w: %d agents stand in a row already, each working for the one before it; do this yourself",
				contract.ErrInvalid, maxDelegation)
		}
		return err
	}
	s, err := st.Open(tx, agent, "task:"+journal.CallID(id), func(s *journal.Session) { s.Group = parent.Group })
	if err != nil {
		return err
	}
	if err := st.Start(tx, id, Delegation{Agent: agent, Outcome: working}.String()); err != nil {
		return err
	}
	in.Kind = contract.InputTask
	_, _, err = st.Queue(tx, s, in, "")
	return err
}

// tooDeep says whether a session is the last of as many as may stand in a row.
func tooDeep(r journal.Reader, s *journal.Session) (bool, error) {
	for range maxDelegation {
		if s == nil || Delegated(s) == 0 {
			return false, nil
		}
		c, err := r.Call(Delegated(s))
		if err != nil || c == nil {
			return false, err
		}
		if s, err = r.Session(c.Session); err != nil {
			return false, err
		}
	}
	return true, nil
}

// Report finishes the call that a session works for with what was said there,
// unless it has ended.
func (st *Store) Report(tx *bus.Tx, s *journal.Session, outcome, text string) error {
	c, err := tx.Call(Delegated(s))
	if err != nil || c == nil || c.State == journal.CallFinished || c.State == journal.CallClosed {
		return err
	}
	d := Delegation{Agent: s.Agent, Success: outcome == contract.OutcomeOK, Outcome: outcome}
	if d.Success {
		d.Output = text
	} else if d.Error = text; text == "" {
		d.Error = failures[outcome]
	}
	st.stop(tx, c.ID)
	return st.Finish(tx, c.ID, d.String(), !d.Success)
}

// failures are the words for a failure that was told without any.
var failures = map[string]string{
	contract.OutcomeError:     "it failed and did not say why",
	contract.OutcomeCancelled: "it was stopped",
	contract.OutcomeTimeout:   "it took too long",
	contract.OutcomeCapped:    "too many turns followed from one event",
	contract.OutcomeDead:      "it failed again and again",
}

// String is the result as JSON; what is too long for a model is cut.
func (d Delegation) String() string {
	for {
		var text bytes.Buffer
		e := json.NewEncoder(&text)
		e.SetEscapeHTML(false)
		_ = e.Encode(d) // strings and a bool
		if text.Len() <= contract.MaxToolResult {
			return strings.TrimSpace(text.String())
		}
		for _, s := range []*string{&d.Output, &d.Error} {
			if *s != "" {
				keep := len(*s)*contract.MaxToolResult/text.Len() - 4*len(cutDelegation)
				*s = strings.ToValidUTF8((*s)[:max(0, keep)], "") + cutDelegation
			}
		}
	}
}

const cutDelegation = "\n[cut: it was longer]"

// abandon stops the work for a call that has been closed.
func (st *Store) abandon(tx *bus.Tx, c *journal.Call) error {
	var d Delegation
	if c.Name != DelegateTool || json.Unmarshal([]byte(c.Result), &d) != nil {
		return nil //nolint:nilerr // it had not begun
	}
	s, err := tx.SessionByKey(d.Agent, "task:"+journal.CallID(c.ID))
	if err != nil || s == nil {
		return err
	}
	return st.clear(tx, s, "what it worked for has ended")
}

// clear ends what runs in a session and settles what waits for it.
func (st *Store) clear(tx *bus.Tx, s *journal.Session, reason string) error {
	if _, err := st.CancelTurns(tx, s, ""); err != nil {
		return err
	}
	if _, err := takeBack(tx, s); err != nil {
		return err
	}
	return st.settleWaiting(tx, s, reason)
}
