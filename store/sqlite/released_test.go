package sqlite

import (
	"bytes"
	"compress/gzip"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// update writes the store of the current version to testdata. The one of a
// version that was released stays as it is.
var update = flag.Bool("update", false, "write the store of the current version to testdata")

func releasedStore(version int) string {
	return filepath.Join("testdata", fmt.Sprintf("v%d.db.gz", version))
}

// unpackReleased puts a store as a program of that version has left it to path.
func unpackReleased(t *testing.T, version int, path string) {
	t.Helper()
	f, err := os.Open(releasedStore(version))
	must(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	must(t, err)
	b, err := io.ReadAll(z)
	must(t, err)
	must(t, os.WriteFile(path, b, 0o600))
}

// TestReleasedStores opens a store of each version that there ever was: all that
// is in it is there afterwards, whatever the version of today is, and so is a
// backup of it as it was.
func TestReleasedStores(t *testing.T) {
	if *update {
		writeReleased(t, releasedStore(len(migrations)))
	}
	for version := 1; version <= len(migrations); version++ {
		path := filepath.Join(t.TempDir(), "test.db")
		unpackReleased(t, version, path)
		s, err := Open(path)
		must(t, err)
		compareReleased(t, s)
		must(t, s.Close())
		c, err := Examine(context.Background(), path)
		if err != nil || c.Version != len(migrations) || c.Events != 2 || c.Sessions != 1 || c.Rows != 2 ||
			c.Unsettled != 1 || c.Keys["memory/fact"] != 1 {
			t.Errorf("the store of version %d becomes %+v (%v)", version, c, err)
		}
		_, err = os.Stat(MigrationBackup(path, version))
		if kept := err == nil; kept != (version < len(migrations)) {
			t.Errorf("version %d of %d: it was kept: %t", version, len(migrations), kept)
		}
	}
}

func writeReleased(t *testing.T, to string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "test.db")
	s, err := Open(path)
	must(t, err)
	must(t, journal.Do(context.Background(), s, func(tx journal.Tx) error {
		sub := &journal.Subscription{Extension: "telegram_channel", Pattern: "channel.send.telegram_channel"}
		conversation := &journal.Conversation{Handle: "h1", Channel: "telegram_channel", Address: "42", CreatedAt: 1}
		if err := tx.PutSubscription(sub); err != nil {
			return err
		}
		if err := tx.PutConversation(conversation); err != nil {
			return err
		}
		for i := range 2 {
			e := &busv1.Event{Topic: "channel.send.telegram_channel", Key: "42", Source: "kernel", DedupeKey: fmt.Sprint("d", i),
				Payload: []byte(`{"text":"tea"}`), CreatedAtUs: int64(i + 1)}
			if err := tx.AppendEvent(e); err != nil {
				return err
			}
			state := []journal.DeliveryState{journal.Done, journal.Pending}[i]
			if err := tx.AddDelivery(journal.Delivery{Seq: e.GetSeq(), Subscription: sub.ID, Key: "42",
				State: state}); err != nil {
				return err
			}
		}
		chat := &journal.Session{Agent: "orchestrator", Key: "telegram_channel/42", Conversation: conversation.ID,
			CreatedAt: 1, ActiveAt: 2}
		if err := tx.PutSession(chat); err != nil {
			return err
		}
		turn := &journal.Turn{Session: chat.ID, Inputs: []int64{1}, StartedAt: 1}
		if err := tx.PutTurn(turn); err != nil {
			return err
		}
		if err := tx.PutCall(&journal.Call{Session: chat.ID, Turn: turn.ID, Name: "shop/buy",
			Arguments: []byte(`{}`)}); err != nil {
			return err
		}
		if err := tx.AppendHistory(chat.ID, []*busv1.Entry{{Seq: 1, Kind: "input", Text: "tea?"},
			{Seq: 2, Kind: "answer", Text: "tea."}}); err != nil {
			return err
		}
		chat.HistorySeq, chat.Stack = 2, []int64{turn.ID}
		if err := tx.PutSession(chat); err != nil {
			return err
		}
		if err := tx.PutCommitReceipt("memory", "c1", []byte("receipt")); err != nil {
			return err
		}
		_, err := tx.KVPut("memory", "fact/1", []byte("kept"))
		return err
	}))
	must(t, s.Close())
	b, err := os.ReadFile(path)
	must(t, err)
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	must(t, err)
	_, err = z.Write(b)
	must(t, err)
	must(t, z.Close())
	must(t, os.MkdirAll(filepath.Dir(to), 0o755))
	must(t, os.WriteFile(to, out.Bytes(), 0o644))
}

func compareReleased(t *testing.T, s *Store) {
	t.Helper()
	must(t, s.View(context.Background(), func(r journal.Reader) error {
		e, err := r.Event(2)
		if err != nil || string(e.GetPayload()) != `{"text":"tea"}` || e.GetTopic() != "channel.send.telegram_channel" {
			t.Errorf("its newest event is %v (%v)", e, err)
		}
		if seq, found, err := r.EventByDedupe("kernel", "d1"); seq != 2 || !found || err != nil {
			t.Errorf("the dedupe key is of event %d, %t (%v)", seq, found, err)
		}
		d, err := r.Delivery(2, 1)
		if err != nil || d == nil || d.State != journal.Pending || d.Rank != journal.RankOf(2) {
			t.Errorf("what waits is %+v (%v)", d, err)
		}
		session, err := r.SessionByKey("orchestrator", "telegram_channel/42")
		if err != nil || session == nil || session.HistorySeq != 2 || len(session.Stack) != 1 {
			t.Fatalf("the session is %+v (%v)", session, err)
		}
		rows, _, err := r.History(session.ID, 0, 1<<20)
		if err != nil || len(rows) != 2 || rows[1].GetText() != "tea." {
			t.Errorf("its history is %v (%v)", rows, err)
		}
		calls, err := r.OpenCalls(session.Stack[0])
		if err != nil || len(calls) != 1 || calls[0].Name != "shop/buy" {
			t.Errorf("its open calls are %+v (%v)", calls, err)
		}
		if v, err := r.KVGet("memory", "fact/1"); string(v.Value) != "kept" || err != nil {
			t.Errorf("a key has %q (%v)", v.Value, err)
		}
		if receipt, found, err := r.CommitReceipt("memory", "c1"); string(receipt) != "receipt" || !found || err != nil {
			t.Errorf("a receipt is %q, %t (%v)", receipt, found, err)
		}
		return nil
	}))
}

// TestDoubt takes a store back to an earlier state: what was about to be done
// then may have been done since.
func TestDoubt(t *testing.T) {
	for version := 1; version <= len(migrations); version++ {
		testDoubt(t, version)
	}
}

func testDoubt(t *testing.T, version int) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "test.db")
	unpackReleased(t, version, path)
	must(t, MarkUncertain(path))
	s, err := Open(path)
	must(t, err)
	must(t, s.View(context.Background(), func(r journal.Reader) error {
		for seq, uncertain := range map[int64]bool{1: false, 2: true} {
			if d, err := r.Delivery(seq, 1); err != nil || d.Uncertain != uncertain {
				t.Errorf("send %d: %+v (%v), want uncertain: %t", seq, d, err, uncertain)
			}
		}
		if c, err := r.Call(1); err != nil || c.State != journal.CallRunning {
			t.Errorf("the open call is %+v (%v)", c, err)
		}
		return nil
	}))
	must(t, s.Close())
}

// TestExamineMisfits breaks what the kernel keeps together.
func TestExamineMisfits(t *testing.T) {
	for _, c := range []struct{ change, want string }{
		{"DELETE FROM event WHERE seq = 2", "1 unsettled deliveries without their event"},
		{"DELETE FROM subscription", "1 unsettled deliveries without their subscription"},
		{"DELETE FROM session", "2 history rows without their session"},
		{"UPDATE session SET history_seq = 9", "1 sessions whose history has another length"},
		{"DELETE FROM conversation", "1 sessions without their conversation"},
		{"UPDATE turn SET ended_at = 5", "1 sessions that run a missing or ended turn"},
		{"UPDATE session SET stack = '[]'", "1 open turns that no session runs"},
		{"DELETE FROM turn", "1 open tool calls of missing or ended turns"},
		{"UPDATE kv SET version = 0", "keys without a version"},
	} {
		for version := 1; version <= len(migrations); version++ {
			examineMisfit(t, version, c.change, c.want)
		}
	}
	for _, c := range []struct{ change, want string }{
		{"UPDATE event SET key = 'other' WHERE seq = 2", "1 unsettled deliveries in another lane than their event"},
		{"UPDATE delivery_block SET open = 0", "1 blocks with wrong counts"},
		{"UPDATE delivery_block SET subscription = 7", "1 blocks with wrong counts"},
		{"INSERT INTO delivery (seq, subscription, key, state, rank) VALUES (1, 1, '', 2, 0)",
			"1 deliveries both in a row and in a block"},
		{"UPDATE delivery_block SET id = id + (1 << 20)", "2 deliveries of events that were never accepted"},
		{"UPDATE delivery_block SET content = x'00'", "cannot be read"},
	} {
		examineMisfit(t, versionOfBlocks, c.change, c.want)
	}
}

func examineMisfit(t *testing.T, version int, change, want string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "test.db")
	unpackReleased(t, version, path)
	s, err := Open(path)
	must(t, err)
	must(t, sqlitex.ExecuteTransient(s.write, change, nil))
	must(t, s.Close())
	_, err = Examine(context.Background(), path)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("version %d, %s: %v, want %q", version, change, err, want)
	}
}
