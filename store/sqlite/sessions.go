package sqlite

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"zombiezen.com/go/sqlite"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

const sessionColumns = "id, agent, key, outbound_kind, outbound_target, conversation, is_group, history_seq, stack, " +
	"created_at, active_at, user_at, chain, idle, title, within"

func (t *tx) sessions(query string, args ...any) (sessions []journal.Session, err error) {
	err = t.query(func(stmt *sqlite.Stmt) error {
		s := journal.Session{
			ID: stmt.ColumnInt64(0), Agent: stmt.ColumnText(1), Key: stmt.ColumnText(2),
			OutboundKind:   int32(stmt.ColumnInt64(3)),
			OutboundTarget: stmt.ColumnText(4), Conversation: stmt.ColumnInt64(5), Group: stmt.ColumnBool(6),
			HistorySeq: stmt.ColumnInt64(7),
			CreatedAt:  stmt.ColumnInt64(9), ActiveAt: stmt.ColumnInt64(10), UserAt: stmt.ColumnInt64(11),
			Chain: stmt.ColumnText(12), Idle: words(stmt.ColumnText(13)),
			Title: stmt.ColumnText(14), Within: stmt.ColumnInt64(15),
		}
		if s.Stack, err = parseIDs(stmt.ColumnText(8)); err != nil {
			return err
		}
		sessions = append(sessions, s)
		return nil
	}, query, args...)
	return sessions, err
}

func (t *tx) session(query string, args ...any) (*journal.Session, error) {
	sessions, err := t.sessions(query, args...)
	if err != nil || len(sessions) == 0 {
		return nil, err
	}
	t.remember(&sessions[0])
	return &sessions[0], nil
}

func (t *tx) Session(id int64) (*journal.Session, error) {
	if s := t.known[id]; s != nil {
		return copyOf(s), nil
	}
	return t.session("SELECT "+sessionColumns+" FROM session WHERE id = ?", id)
}

func (t *tx) SessionByKey(agent, key string) (*journal.Session, error) {
	for _, s := range t.known {
		if s.Agent == agent && s.Key == key {
			return copyOf(s), nil
		}
	}
	return t.session("SELECT "+sessionColumns+" FROM session WHERE agent = ? AND key = ?", agent, key)
}

func (t *tx) Sessions(f journal.SessionFilter) ([]journal.Session, error) {
	limit := limitOr(f.Limit, 100)
	if f.Agent != "" {
		return t.sessions("SELECT "+sessionColumns+" FROM session WHERE agent = +? ORDER BY active_at DESC LIMIT +?",
			f.Agent, limit)
	}
	return t.sessions("SELECT "+sessionColumns+" FROM session ORDER BY active_at DESC LIMIT +?", limit)
}

func (t *tx) PutSession(s *journal.Session) (err error) {
	defer func() {
		if err == nil {
			t.remember(s)
		}
	}()
	if s.ID != 0 {
		return t.write("UPDATE session SET outbound_kind = ?, outbound_target = ?, conversation = ?, is_group = ?, "+
			"history_seq = ?, stack = ?, active_at = ?, user_at = ?, idle = ?, title = ?, within = ? WHERE id = ?",
			s.OutboundKind, s.OutboundTarget, s.Conversation, s.Group, s.HistorySeq, formatIDs(s.Stack), s.ActiveAt, s.UserAt,
			strings.Join(s.Idle, " "), s.Title, s.Within, s.ID)
	}
	s.ID, err = t.insert("INSERT INTO session ("+sessionColumns+") "+
		"VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		s.Agent, s.Key, s.OutboundKind, s.OutboundTarget, s.Conversation, s.Group, s.HistorySeq, formatIDs(s.Stack),
		s.CreatedAt, s.ActiveAt, s.UserAt, s.Chain, strings.Join(s.Idle, " "), s.Title, s.Within)
	return err
}

func (t *tx) DeleteSession(id int64) error {
	delete(t.known, id)
	for _, query := range []string{
		"DELETE FROM history WHERE session = ?", "DELETE FROM call WHERE session = ?",
		"DELETE FROM turn WHERE session = ?", "DELETE FROM session WHERE id = ?",
		fmt.Sprintf("DELETE FROM blob_keeper WHERE kind = %d AND id = ?", journal.KeptBySession),
	} {
		if err := t.write(query, id); err != nil {
			return err
		}
	}
	return nil
}

func scanEntry(stmt *sqlite.Stmt, session int64) (*busv1.Entry, error) {
	row := &busv1.Entry{}
	if err := proto.Unmarshal(column(stmt, 1), row); err != nil {
		return nil, fmt.Errorf("history row %d of session %d: %w", stmt.ColumnInt64(0), session, err)
	}
	return row, nil
}

func (t *tx) History(session, after, maxBytes int64) (rows []*busv1.Entry, truncated bool, err error) {
	var size int64
	err = t.query(func(stmt *sqlite.Stmt) error {
		size += int64(stmt.ColumnLen(1))
		if len(rows) > 0 && size > maxBytes {
			truncated = true
			return errStop
		}
		row, err := scanEntry(stmt, session)
		rows = append(rows, row)
		return err
	}, "SELECT seq, row FROM history WHERE session = +? AND seq > ? ORDER BY seq DESC", session, after)
	slices.Reverse(rows)
	return rows, truncated, err
}

func (t *tx) HistoryBefore(session, before int64, limit int) (rows []*busv1.Entry, err error) {
	if before <= 0 {
		before = math.MaxInt64
	}
	err = t.query(func(stmt *sqlite.Stmt) error {
		row, err := scanEntry(stmt, session)
		rows = append(rows, row)
		return err
	}, "SELECT seq, row FROM history WHERE session = +? AND seq < ? ORDER BY seq DESC LIMIT +?", session, before, limit)
	slices.Reverse(rows)
	return rows, err
}

func (t *tx) AppendHistory(session int64, rows []*busv1.Entry) error {
	for _, row := range rows {
		b, err := proto.Marshal(row)
		if err != nil {
			return err
		}
		if err := t.write("INSERT INTO history (session, seq, row) VALUES (?, ?, ?)", session, row.GetSeq(), b); err != nil {
			return err
		}
	}
	return nil
}

func (t *tx) Turn(id int64) (turn *journal.Turn, err error) {
	err = t.query(func(stmt *sqlite.Stmt) error {
		turn = &journal.Turn{
			ID: stmt.ColumnInt64(0), Session: stmt.ColumnInt64(1), ReplyTo: stmt.ColumnText(3), Chain: stmt.ColumnText(4),
			Outcome: stmt.ColumnText(5), UsedSend: stmt.ColumnBool(6), Interrupted: stmt.ColumnInt(7),
			StartedAt: stmt.ColumnInt64(8), EndedAt: stmt.ColumnInt64(9), Person: stmt.ColumnText(10),
		}
		turn.Inputs, err = parseIDs(stmt.ColumnText(2))
		return err
	}, "SELECT id, session, inputs, reply_to, chain, outcome, used_send, interrupted, started_at, ended_at, person "+
		"FROM turn WHERE id = ?", id)
	return turn, err
}

func (t *tx) TurnsOf(chain string, most int) (int, error) {
	n, err := t.number("SELECT count(*) FROM (SELECT 1 FROM turn WHERE chain = ? LIMIT +?)", chain, most)
	return int(n), err
}

func (t *tx) PutTurn(turn *journal.Turn) (err error) {
	if turn.ID != 0 {
		return t.write("UPDATE turn SET inputs = ?, reply_to = ?, outcome = ?, used_send = ?, interrupted = ?, "+
			"ended_at = ? WHERE id = ?",
			formatIDs(turn.Inputs), turn.ReplyTo, turn.Outcome, turn.UsedSend, turn.Interrupted, turn.EndedAt, turn.ID)
	}
	turn.ID, err = t.insert("INSERT INTO turn (session, inputs, reply_to, chain, person, outcome, used_send, "+
		"interrupted, started_at, ended_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		turn.Session, formatIDs(turn.Inputs), turn.ReplyTo, turn.Chain, turn.Person, turn.Outcome, turn.UsedSend,
		turn.Interrupted, turn.StartedAt, turn.EndedAt)
	return err
}

const callColumns = "id, session, turn, provider_id, name, arguments, state, result, is_error, started_at, ended_at, " +
	"owner, person"

func (t *tx) calls(query string, args ...any) (calls []journal.Call, err error) {
	err = t.query(func(stmt *sqlite.Stmt) error {
		calls = append(calls, journal.Call{
			ID: stmt.ColumnInt64(0), Session: stmt.ColumnInt64(1), Turn: stmt.ColumnInt64(2), ProviderID: stmt.ColumnText(3),
			Name: stmt.ColumnText(4), Arguments: column(stmt, 5), State: journal.CallState(stmt.ColumnInt64(6)),
			Result:  stmt.ColumnText(7),
			IsError: stmt.ColumnBool(8), StartedAt: stmt.ColumnInt64(9), EndedAt: stmt.ColumnInt64(10),
			Owner: stmt.ColumnText(11), Person: stmt.ColumnText(12),
		})
		return nil
	}, query, args...)
	return calls, err
}

func (t *tx) Call(id int64) (*journal.Call, error) {
	calls, err := t.calls("SELECT "+callColumns+" FROM call WHERE id = ?", id)
	if err != nil || len(calls) == 0 {
		return nil, err
	}
	return &calls[0], nil
}

func (t *tx) OpenCalls(turn int64) ([]journal.Call, error) {
	return t.calls("SELECT "+callColumns+" FROM call WHERE turn = +? AND state < 2 ORDER BY id", turn)
}

func (t *tx) PutCall(c *journal.Call) (err error) {
	if c.ID != 0 {
		return t.write("UPDATE call SET state = ?, result = ?, is_error = ?, started_at = ?, ended_at = ? WHERE id = ?",
			int(c.State), c.Result, c.IsError, c.StartedAt, c.EndedAt, c.ID)
	}
	c.ID, err = t.insert("INSERT INTO call ("+callColumns+") VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		c.Session, c.Turn, c.ProviderID, c.Name, c.Arguments, int(c.State), c.Result, c.IsError, c.StartedAt, c.EndedAt,
		c.Owner, c.Person)
	return err
}

func (t *tx) DeleteCall(id int64) error { return t.write("DELETE FROM call WHERE id = ?", id) }

const conversationColumns = "id, handle, channel, address, thread, is_group, agent, epoch, created_at, model"

func (t *tx) conversation(query string, args ...any) (c *journal.Conversation, err error) {
	err = t.query(func(stmt *sqlite.Stmt) error {
		c = &journal.Conversation{
			ID: stmt.ColumnInt64(0), Handle: stmt.ColumnText(1), Channel: stmt.ColumnText(2), Address: stmt.ColumnText(3),
			Thread: stmt.ColumnText(4),
			Group:  stmt.ColumnBool(5), Agent: stmt.ColumnText(6), Epoch: stmt.ColumnInt64(7), CreatedAt: stmt.ColumnInt64(8),
			Model: stmt.ColumnText(9),
		}
		return nil
	}, query, args...)
	return c, err
}

func (t *tx) Conversation(id int64) (*journal.Conversation, error) {
	return t.conversation("SELECT "+conversationColumns+" FROM conversation WHERE id = ?", id)
}

func (t *tx) ConversationByHandle(handle string) (*journal.Conversation, error) {
	return t.conversation("SELECT "+conversationColumns+" FROM conversation WHERE handle = ?", handle)
}

func (t *tx) ConversationByAddress(channel, address, thread string) (*journal.Conversation, error) {
	return t.conversation("SELECT "+conversationColumns+" FROM conversation "+
		"WHERE channel = ? AND address = ? AND thread = ?", channel, address, thread)
}

func (t *tx) PutConversation(c *journal.Conversation) (err error) {
	if c.ID != 0 {
		return t.write("UPDATE conversation SET handle = ?, is_group = ?, agent = ?, epoch = ?, model = ? WHERE id = ?",
			c.Handle, c.Group, c.Agent, c.Epoch, c.Model, c.ID)
	}
	c.ID, err = t.insert("INSERT INTO conversation ("+conversationColumns+") VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		c.Handle, c.Channel, c.Address, c.Thread, c.Group, c.Agent, c.Epoch, c.CreatedAt, c.Model)
	return err
}

func formatIDs(ids []int64) string {
	if len(ids) == 0 {
		return "[]"
	}
	b, _ := json.Marshal(ids)
	return string(b)
}

// words splits ids of extensions joined with blanks.
func words(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Fields(text)
}

func parseIDs(text string) (ids []int64, err error) {
	if text == "[]" {
		return nil, nil
	}
	return ids, json.Unmarshal([]byte(text), &ids)
}
