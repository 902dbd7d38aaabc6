package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/switchboard-run/switchboard/bench/ledger"
)

// back has the scripts that turn a store of a version into one of the previous version.
var back = map[int]string{
	7: `DROP TABLE blob_keeper;
DROP TABLE blob_bytes;
DROP TABLE blob;
PRAGMA user_version=6;`,
	6: `ALTER TABLE conversation DROP COLUMN model;
PRAGMA user_version=5;`,
	5: `ALTER TABLE session DROP COLUMN title;
ALTER TABLE session DROP COLUMN within;
PRAGMA user_version=4;`,
	4: `INSERT INTO kv (owner, key, value, version)
SELECT 'kernel', 'run', CAST(CAST(epoch.number AS TEXT) AS BLOB), kv_floor.version + 1 FROM epoch, kv_floor;
DROP TABLE epoch;
ALTER TABLE kv_floor RENAME TO kv_floor_with_key;
CREATE TABLE kv_floor (version INTEGER NOT NULL);
INSERT INTO kv_floor SELECT version FROM kv_floor_with_key;
DROP TABLE kv_floor_with_key;
ALTER TABLE turn DROP COLUMN person;
ALTER TABLE call DROP COLUMN person;
ALTER TABLE call DROP COLUMN owner;
PRAGMA user_version=3;`,
	3: `INSERT INTO delivery (seq, subscription, key, state, rank)
SELECT e.seq, b.subscription, iif(of_block(b.content, 2, e.seq), '', e.key), iif(of_block(b.content, 1, e.seq), 2, 0), e.seq << 20
FROM delivery_block b JOIN event e ON e.seq BETWEEN b.id >> 20 << 8 AND (b.id >> 20 << 8) + 255 WHERE of_block(b.content, 0, e.seq);
DROP TABLE delivery_block;
PRAGMA user_version=2;`,
	2: `ALTER TABLE turn RENAME COLUMN chain TO correlation;
ALTER TABLE session DROP COLUMN chain;
ALTER TABLE session DROP COLUMN idle;
PRAGMA user_version=1;`,
}

const (
	upgraded     = 8 // homes
	upgradeKills = 4 // of kernels during the migration
	inUpgrade    = 20
)

// ofBlock returns SQL for the bit of an event in one of the bitmaps at the beginning of a
// block of deliveries: those that it has, those that are done, and those without a lane.
func ofBlock(_ sqlite.Context, args []sqlite.Value) (sqlite.Value, error) {
	content, which, place := args[0].Blob(), args[1].Int64(), args[2].Int64()%256
	return sqlite.IntegerValue(int64(content[32*which+place/8] >> (place % 8) & 1)), nil
}

// upgrades kills kernels on a store of an older version with pending work, while they back
// it up, migrate it, and start.
func upgrades(r *run, random *rand.Rand) error {
	homes := upgraded
	if r.short {
		homes = 1
	}
	for n := range homes {
		began := time.Now()
		c, problems, err := r.upgrade(random)
		if err != nil {
			return err
		}
		r.report.add(r.part("upgrades"), "kernel", c, time.Since(began))
		r.report.Problems = append(r.report.Problems, problems...)
		r.say("home %d of %d: %d kills, %s", n+1, homes, c.Kills, time.Since(began).Round(time.Millisecond))
		for _, p := range problems {
			r.say("%s", p)
		}
	}
	return nil
}

func (r *run) upgrade(random *rand.Rand) (c ledger.Counts, problems []string, err error) {
	h, err := newHome(r.binary, r.channel, "")
	if err != nil {
		return c, nil, err
	}
	defer func() { h.close(len(problems) > 0) }()
	if err := h.start(); err != nil {
		return c, nil, err
	}
	if err := h.warm(); err != nil {
		return c, nil, err
	}
	var messages []ledger.Message
	for i := range inUpgrade {
		m := ledger.Message{Token: ledger.TokenOf("u", i), Chat: ledger.ChatOf(i), Reminder: true}
		h.Model.Want(m.Token, ledger.Job{Delay: ledger.DelayOf(i), Reply: ledger.ReplyOf(i)})
		messages = append(messages, m)
		h.write(m.Chat, m.Token)
	}
	time.Sleep(moment(random.Float64(), 300*time.Millisecond))
	h.crash()
	if err := h.older(); err != nil {
		return c, nil, err
	}
	for range upgradeKills {
		if err := h.start(); err != nil {
			return c, nil, err
		}
		time.Sleep(moment(random.Float64(), 80*time.Millisecond))
		h.crash()
		c.Kills++
	}
	if err := h.start(); err != nil {
		return c, nil, err
	}
	found, problems := h.Settle(messages)
	c.Add(found)
	for _, p := range append(h.astray(), h.ProcessesLeft()...) {
		c.ProcessesLeft++
		problems = append(problems, "leftover process: "+p)
	}
	if len(problems) > 0 {
		problems = append(problems, "see "+h.dir)
	}
	return c, problems, nil
}

// older turns the store into one of the first version.
func (h *home) older() error {
	conn, err := sqlite.OpenConn(h.file("switchboard.db"), sqlite.OpenReadWrite)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // what matters is asked for below
	version := 0
	err = sqlitex.ExecuteTransient(conn, "PRAGMA user_version",
		&sqlitex.ExecOptions{ResultFunc: func(s *sqlite.Stmt) error {
			version = s.ColumnInt(0)
			return nil
		}})
	if err != nil {
		return err
	}
	err = conn.CreateFunction("of_block", &sqlite.FunctionImpl{NArgs: 3, Deterministic: true, Scalar: ofBlock})
	for ; err == nil && version > 1; version-- {
		script, ok := back[version]
		if !ok {
			return fmt.Errorf("it is not known how to make a store of version %d older", version)
		}
		err = sqlitex.ExecScript(conn, script)
	}
	return err
}
