package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/switchboard-run/switchboard/bench/ledger"
	"github.com/switchboard-run/switchboard/store/commitlog"
)

// chain reads the whole log and returns where it does not fit together: an entry that does
// not follow its predecessor, is damaged, or is of an epoch that was over.
func (w *world) chain() (entries int, problems []string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := pgconn.Connect(ctx, w.servers.Primary.DSN(w.database))
	if err != nil {
		return 0, []string{"read the log: " + err.Error()}
	}
	defer func() { _ = c.Close(ctx) }()
	results, err := c.Exec(ctx, `SELECT encode(entry, 'hex') FROM switchboard.log ORDER BY cell, position`).ReadAll()
	if err != nil {
		return 0, []string{"read the log: " + err.Error()}
	}
	var at commitlog.Position
	var epoch int64
	writers := map[int64][16]byte{}
	for _, row := range results[0].Rows {
		raw, err := hex.DecodeString(string(row[0]))
		if err != nil {
			return entries, append(problems, err.Error())
		}
		e, err := commitlog.Decode(raw)
		if entries == 0 && e.Position > 1 { // the log was truncated
			at = commitlog.Position{Head: e.Position - 1, Hash: e.Previous}
		}
		if err == nil {
			err = commitlog.Check(at, e)
		}
		writer, known := writers[e.Epoch]
		switch {
		case err != nil:
		case e.Epoch < epoch:
			err = fmt.Errorf("entry %d is of epoch %d, after one of epoch %d", e.Position, e.Epoch, epoch)
		case known && writer != e.Incarnation:
			err = fmt.Errorf("epoch %d has two writers", e.Epoch)
		}
		if err != nil {
			return entries, append(problems, "the log: "+err.Error())
		}
		writers[e.Epoch], epoch, at = e.Incarnation, e.Epoch, e.At()
		entries++
	}
	return entries, problems
}

var owns = regexp.MustCompile(`this node owns the cell: .*epoch=(\d+)`)

// epochs are those that the nodes say to have had. None has two owners.
func (w *world) epochs() (takeovers int, problems []string) {
	of := map[string]string{}
	for _, n := range w.nodes {
		raw, _ := os.ReadFile(n.out.Name())
		last := 0
		for _, m := range owns.FindAllStringSubmatch(string(raw), -1) {
			takeovers++
			if other := of[m[1]]; other != "" {
				problems = append(problems, fmt.Sprintf("epoch %s is of %s and %s", m[1], other, n.name))
			}
			of[m[1]] = n.name
			number, _ := strconv.Atoi(m[1])
			if number <= last {
				problems = append(problems, fmt.Sprintf("%s has epoch %d after %d", n.name, number, last))
			}
			last = number
		}
	}
	return takeovers, problems
}

// told counts the reports of a node that PostgreSQL has lost commits.
func (w *world) told() (n int) {
	for _, node := range w.nodes {
		n += node.said("PostgreSQL has lost commits")
	}
	return n
}

// alike waits until all running nodes have the same state, and reports if they do not get
// there.
func (w *world) alike() []string {
	end, err := w.rest()
	defer end()
	if err != nil {
		return []string{err.Error()}
	}
	var states []string
	err = ledger.Until("all copies to be alike", w.Patience, func() bool {
		states = states[:0]
		for _, n := range w.nodes {
			if n.PID() != 0 {
				s, err := stateOf(n.file("switchboard.db"))
				if err != nil {
					s = err.Error()
				}
				states = append(states, n.name+" "+s)
			}
		}
		return !slices.ContainsFunc(states, func(s string) bool { return s[2:] != states[0][2:] })
	})
	if err != nil {
		return []string{"the copies differ: " + strings.Join(states, ", ")}
	}
	return nil
}

// stateOf is a digest of a store: its position in the log, and the rows of its tables.
func stateOf(path string) (string, error) {
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadOnly)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	var tables []string
	all := func(sql string, each func(*sqlite.Stmt) error) error {
		return sqlitex.ExecuteTransient(conn, sql, &sqlitex.ExecOptions{ResultFunc: each})
	}
	err = all("BEGIN", nil)
	if err == nil {
		err = all(`SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name`,
			func(s *sqlite.Stmt) error {
				tables = append(tables, s.ColumnText(0))
				return nil
			})
	}
	sum, head := sha256.New(), ""
	for _, table := range tables {
		rows := []string{}
		err = errors.Join(err, all("SELECT * FROM "+table, func(s *sqlite.Stmt) error {
			var row strings.Builder
			for i := range s.ColumnCount() {
				fmt.Fprintf(&row, "%d %q,", s.ColumnType(i), s.ColumnText(i))
			}
			if rows = append(rows, row.String()); table == "log_position" {
				head = s.ColumnText(1)
			}
			return nil
		}))
		slices.Sort(rows)
		fmt.Fprintln(sum, table, rows)
	}
	return fmt.Sprintf("%s %x", head, sum.Sum(nil)[:8]), err
}

// check returns all that is wrong with a cluster at rest, but for the ledger.
func (w *world) check() (found figures, problems []string) {
	found.Entries, problems = w.chain()
	takeovers, more := w.epochs()
	found.Takeovers = takeovers
	problems = append(problems, more...)
	problems = append(problems, w.alike()...)
	for _, n := range w.nodes {
		for _, p := range n.ProcessesLeft() {
			problems = append(problems, "leftover process of "+n.name+": "+p)
		}
		for _, damage := range []string{"panic:", "DATA RACE", "malformed"} {
			if n.said(damage) > 0 {
				problems = append(problems, fmt.Sprintf("%s says %q; see %s", n.name, damage, filepath.Base(n.out.Name())))
			}
		}
	}
	if w.kv {
		var bad []string
		found.Operations, bad = linearizable(w.history())
		problems = append(problems, bad...)
	}
	return found, problems
}

// figures count what a check has looked at.
type figures struct {
	Entries, Takeovers, Operations int
}
