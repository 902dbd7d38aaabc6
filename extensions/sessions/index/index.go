// Package index finds texts of conversations by their words in any form, in a file.
//
// # Promises
//
//   - A query finds the texts that have all of its words, the newest first. "чайнику" finds
//     "чайник" and "reminders" finds "remind": English and Russian words are reduced to their
//     stems. "Words in quotes" follow one another, and remin* stands for all words that begin
//     like it. No query is wrong.
//   - A text is found once: texts are added in one transaction with the number of the last
//     one of their session, so that a crash neither loses nor repeats any.
//   - The file is a cache. It has the stems of words in their order, not the texts. A damaged
//     one, and one of another version, is replaced by an empty one.
//   - What is removed is removed from the file, too.
//
// An Index is not safe for concurrent use.
package index

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// ErrDamaged means that the file cannot be read: remove it.
var ErrDamaged = errors.New("the search index is damaged")

// Index finds texts by their words.
type Index struct {
	conn  *sqlite.Conn
	words splitter
}

// Session is a session in the index.
type Session struct {
	ID      string
	Agent   string
	Channel string
	Created int64 // tells it from another session with the same id
	Rows    int64 // the last row that the index has seen
}

// Text is one row of a session.
type Text struct {
	Seq  int64
	At   int64 // Unix microseconds
	Text string
}

const (
	fileName = "search.db"
	version  = 1
	schema   = `
CREATE TABLE session (
	id TEXT PRIMARY KEY, agent TEXT NOT NULL, channel TEXT NOT NULL, created INTEGER NOT NULL, rows INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE entry (id INTEGER PRIMARY KEY, session TEXT NOT NULL, seq INTEGER NOT NULL);
CREATE UNIQUE INDEX entry_of ON entry (session, seq);
CREATE VIRTUAL TABLE words USING fts5(stems, tokenize = "unicode61 remove_diacritics 2");
INSERT INTO words (words, rank) VALUES ('secure-delete', 1);
PRAGMA user_version = 1;`
	cacheTag = "Signature: 8a477f597d28d172789f06886806bc55\n# Rebuilt when it is missing.\n"
)

// Exists reports whether a directory has an index.
func Exists(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, fileName))
	return err == nil
}

// Open opens the index in a directory, which is made, and marked as a cache, if necessary.
func Open(dir string) (*Index, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory of the search index: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "CACHEDIR.TAG"), []byte(cacheTag), 0o600); err != nil {
		return nil, fmt.Errorf("mark the search index as a cache: %w", err)
	}
	x, err := open(filepath.Join(dir, fileName))
	if err == nil {
		return x, nil
	}
	if remove := Remove(dir); remove != nil {
		return nil, errors.Join(err, remove)
	}
	return open(filepath.Join(dir, fileName))
}

// Remove removes the index in a directory.
func Remove(dir string) error {
	for _, suffix := range []string{"-wal", "-shm", ""} {
		if err := os.Remove(filepath.Join(dir, fileName+suffix)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the search index: %w", err)
		}
	}
	return nil
}

func open(path string) (*Index, error) {
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite, sqlite.OpenCreate, sqlite.OpenWAL)
	if err != nil {
		return nil, fmt.Errorf("open the search index %s: %w", path, err)
	}
	if err := prepare(conn); err != nil {
		return nil, errors.Join(fmt.Errorf("open the search index %s: %w", path, err), conn.Close())
	}
	return &Index{conn, newSplitter()}, nil
}

func prepare(conn *sqlite.Conn) error {
	for _, pragma := range []string{"synchronous = NORMAL", "secure_delete = ON", "cache_size = -4096"} {
		if err := sqlitex.ExecuteTransient(conn, "PRAGMA "+pragma, nil); err != nil {
			return err
		}
	}
	have, err := sqlitex.ResultInt(conn.Prep("PRAGMA user_version"))
	switch {
	case err != nil:
		return err
	case have == 0:
		return sqlitex.ExecuteScript(conn, schema, nil)
	case have != version:
		return fmt.Errorf("it has version %d, not %d", have, version)
	}
	return nil
}

// Close closes the index.
func (x *Index) Close() error {
	if err := x.conn.Close(); err != nil {
		return fmt.Errorf("close the search index: %w", err)
	}
	return nil
}

// Sessions returns the sessions in the index, by their ids.
func (x *Index) Sessions() (map[string]Session, error) {
	all := map[string]Session{}
	err := x.query("SELECT id, agent, channel, created, rows FROM session", func(s *sqlite.Stmt) error {
		one := Session{s.ColumnText(0), s.ColumnText(1), s.ColumnText(2), s.ColumnInt64(3), s.ColumnInt64(4)}
		all[one.ID] = one
		return nil
	})
	return all, err
}

// Batch is what is added of a session, and what the session is from now on.
type Batch struct {
	Session
	Texts []Text
}

// Add adds texts of sessions. It adds all or none.
func (x *Index) Add(batches ...Batch) (err error) {
	end, err := sqlitex.ImmediateTransaction(x.conn)
	if err != nil {
		return fmt.Errorf("add to the search index: %w", err)
	}
	defer end(&err)
	for _, b := range batches {
		if err := x.add(b); err != nil {
			return err
		}
	}
	return nil
}

func (x *Index) add(b Batch) error {
	s := b.Session
	for _, t := range b.Texts {
		stems := x.words.stems(t.Text)
		if stems == "" {
			continue
		}
		id, err := x.place(s.ID, t)
		if err == nil {
			err = x.exec("INSERT INTO words (rowid, stems) VALUES (?, ?)", id, stems)
		}
		if err != nil {
			return err
		}
	}
	return x.exec("INSERT OR REPLACE INTO session (id, agent, channel, created, rows) VALUES (?, ?, ?, ?, ?)",
		s.ID, s.Agent, s.Channel, s.Created, s.Rows)
}

// perMicrosecond is how many texts of one microsecond get ids of their own by it; more take
// those of the next.
const perMicrosecond = 1024

// place stores a row, and returns its id: ids are in the order of time.
func (x *Index) place(session string, t Text) (id int64, err error) {
	for id = max(0, t.At) * perMicrosecond; ; id++ {
		err := x.exec("INSERT INTO entry (id, session, seq) VALUES (?, ?, ?)", id, session, t.Seq)
		if sqlite.ErrCode(err) != sqlite.ResultConstraintPrimaryKey && sqlite.ErrCode(err) != sqlite.ResultConstraintRowID {
			return id, err
		}
	}
}

// RemoveSession removes a session with its texts.
func (x *Index) RemoveSession(id string) (err error) {
	end, err := sqlitex.ImmediateTransaction(x.conn)
	if err != nil {
		return fmt.Errorf("remove a session from the search index: %w", err)
	}
	defer end(&err)
	for _, query := range []string{
		"DELETE FROM words WHERE rowid IN (SELECT id FROM entry WHERE session = ?)",
		"DELETE FROM entry WHERE session = ?", "DELETE FROM session WHERE id = ?",
	} {
		if err := x.exec(query, id); err != nil {
			return err
		}
	}
	return nil
}

// Query selects texts; an empty field selects all.
type Query struct {
	Words   string
	Agent   string
	Channel string
	Session string
	Before  int64 // Hit.ID of the last one of an earlier answer
}

// Hit is a text that was found.
type Hit struct {
	ID      int64
	Session string
	Seq     int64
}

// At is the time of the text, in Unix microseconds.
func (h Hit) At() int64 { return h.ID / perMicrosecond }

// Find calls each with what a query finds, the newest first, until it returns false or ctx
// ends. A query without words finds nothing.
func (x *Index) Find(ctx context.Context, q Query, each func(Hit) (more bool, err error)) error {
	match := x.words.parse(q.Words).match
	if match == "" {
		return nil
	}
	where := []string{"words MATCH ?"}
	arguments := []any{match}
	add := func(condition string, value string) {
		if value != "" {
			where, arguments = append(where, condition), append(arguments, value)
		}
	}
	add("entry.session = ?", q.Session)
	add("session.agent = ?", q.Agent)
	add("session.channel = ?", q.Channel)
	if q.Before > 0 {
		where, arguments = append(where, "words.rowid < ?"), append(arguments, q.Before)
	}
	x.conn.SetInterrupt(ctx.Done())
	defer x.conn.SetInterrupt(nil)
	err := x.query("SELECT words.rowid, entry.session, entry.seq FROM words CROSS JOIN entry ON entry.id = words.rowid "+
		"CROSS JOIN session ON session.id = entry.session WHERE "+strings.Join(where, " AND ")+
		" ORDER BY words.rowid DESC", func(s *sqlite.Stmt) error {
		more, err := each(Hit{s.ColumnInt64(0), s.ColumnText(1), s.ColumnInt64(2)})
		if err == nil && !more {
			err = errEnough
		}
		return err
	}, arguments...)
	switch {
	case errors.Is(err, errEnough):
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return err
}

var errEnough = errors.New("enough")

func (x *Index) exec(query string, arguments ...any) error { return x.query(query, nil, arguments...) }

func (x *Index) query(query string, each func(*sqlite.Stmt) error, arguments ...any) error {
	err := sqlitex.Execute(x.conn, query, &sqlitex.ExecOptions{Args: arguments, ResultFunc: each})
	switch code := sqlite.ErrCode(err).ToPrimary(); {
	case err == nil:
		return nil
	case code == sqlite.ResultCorrupt, code == sqlite.ResultNotADB:
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return fmt.Errorf("use the search index: %w", err)
}
