package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/store/sqlite"
)

// fillChats gives each of the paced chats a history of rows.
func fillChats(path string, rows int) error {
	store, err := sqlite.Open(path)
	if err != nil {
		return err
	}
	now := time.Now().Add(-time.Hour).UnixMicro()
	for c := range pacedChats {
		if err := journal.Do(context.Background(), store, func(tx journal.Tx) error {
			s := &journal.Session{
				Agent: "orchestrator", Key: fmt.Sprintf("chan:telegram_channel:%d", 2+c), HistorySeq: int64(rows), CreatedAt: now,
				ActiveAt: now,
			}
			if err := tx.PutSession(s); err != nil {
				return err
			}
			entries := make([]*busv1.Entry, 0, rows)
			for i := range rows {
				e := &busv1.Entry{Seq: int64(i + 1), Turn: int64(i/2 + 1), CreatedAtUs: now, Text: fmt.Sprint("message ", i)}
				if e.Kind = contract.EntryAnswer; i%2 == 0 {
					e.Kind, e.InputKind = contract.EntryInput, contract.InputUser
				}
				entries = append(entries, e)
			}
			return tx.AppendHistory(s.ID, entries)
		}); err != nil {
			return err
		}
	}
	if err := store.Close(); err != nil {
		return err
	}
	return os.Chmod(path, 0o600)
}
