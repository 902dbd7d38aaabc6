package sqlite

import (
	"errors"

	"zombiezen.com/go/sqlite"

	"github.com/switchboard-run/switchboard/kernel/journal"
)

// tx implements journal.Tx on one connection. As a Reader it has no store.
type tx struct {
	conn   *sqlite.Conn
	store  *Store
	nested bool  // members have savepoints of their own
	saved  bool  // the savepoint is set
	wrote  bool  // the member has written something
	half   bool  // a part failed after writing something
	failed error // of the engine itself: the group must be rolled back
	blob   []byte
	known  map[int64]*journal.Session // that the update has read or written, by id
}

var _ journal.Tx = (*tx)(nil)

var errReadOnly = errors.New("a view cannot write")

// exec runs a statement without parameters or results.
func (t *tx) exec(query string) error {
	stmt, err := t.conn.Prepare(query)
	if err != nil {
		return err
	}
	defer func() { _ = stmt.Reset() }()
	_, err = stmt.Step()
	return err
}

// write runs a statement that changes rows.
func (t *tx) write(query string, args ...any) error {
	return t.writeReturning(nil, query, args...)
}

// insert adds a row and returns its id.
func (t *tx) insert(query string, args ...any) (id int64, err error) {
	if err := t.write(query, args...); err != nil {
		return 0, err
	}
	return t.conn.LastInsertRowID(), nil
}

// writeReturning runs a statement that changes rows and returns some.
func (t *tx) writeReturning(row func(*sqlite.Stmt) error, query string, args ...any) error {
	if err := t.begin(); err != nil {
		return err
	}
	return t.written(t.query(row, query, args...))
}

// begin is called before a member writes.
func (t *tx) begin() error {
	if t.store == nil {
		return errReadOnly
	}
	t.wrote = true
	if t.nested && !t.saved {
		if err := t.exec("SAVEPOINT member"); err != nil {
			t.failed = err
			return err
		}
		t.saved = true
	}
	return nil
}

// written is called with the outcome of a write.
func (t *tx) written(err error) error {
	if err != nil && sqlite.ErrCode(err).ToPrimary() != sqlite.ResultConstraint {
		t.failed = err
	}
	return err
}

// hot is a statement that each event runs, or each group. The writing connection keeps it at
// hand, and it is bound without a list of arguments.
type hot int

const (
	hotAppendEvent hot = iota
	hotPutBlock
	hots
)

var hotQueries = [hots]string{
	hotAppendEvent: "INSERT INTO event (" + eventColumns + ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
	hotPutBlock: `INSERT INTO delivery_block (id, subscription, open, content) VALUES (?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET open = excluded.open, content = excluded.content`,
}

// writeHot runs a statement that changes something. bindAll binds each of its
// parameters: nothing else clears what the last run left there.
func (t *tx) writeHot(h hot, bindAll func(*sqlite.Stmt)) error {
	if err := t.begin(); err != nil {
		return err
	}
	return t.written(t.runHot(h, bindAll))
}

func (t *tx) runHot(h hot, bindAll func(*sqlite.Stmt)) (err error) {
	stmt := t.store.hot[h]
	if stmt == nil {
		if stmt, err = t.conn.Prepare(hotQueries[h]); err != nil {
			return err
		}
		t.store.hot[h] = stmt
	}
	bindAll(stmt)
	_, err = stmt.Step()
	if e := stmt.Reset(); err == nil {
		err = e
	}
	return err
}

// undo rolls back the writes of the member.
func (t *tx) undo() error {
	t.store.blocks.drop()
	t.forget()
	if !t.nested {
		return t.exec("ROLLBACK")
	}
	if !t.saved {
		return nil
	}
	if err := t.exec("ROLLBACK TO member"); err != nil {
		return err
	}
	return t.exec("RELEASE member")
}

// errStop ends a query early.
var errStop = errors.New("stop")

// query binds args, steps through the rows, and resets the statement. Bound
// values are int64, int32, int, bool, string, []byte and nil.
//
// SQLite plans a statement again for every new value of a parameter that the plan may
// depend on, which takes several times as long as running it: that of a LIMIT, and in
// a statement with ORDER BY one that a column is compared to. Such a parameter is
// written as +?, an expression that the planner ignores.
func (t *tx) query(row func(*sqlite.Stmt) error, query string, args ...any) (err error) {
	stmt, err := t.conn.Prepare(query)
	if err != nil {
		return err
	}
	defer func() {
		if e := stmt.Reset(); err == nil && e != nil {
			err = e
		}
	}()
	for i, a := range args {
		bind(stmt, i+1, a)
	}
	for {
		more, err := stmt.Step()
		if err != nil || !more {
			return err
		}
		if row == nil {
			continue
		}
		if err := row(stmt); err != nil {
			if errors.Is(err, errStop) {
				return nil
			}
			return err
		}
	}
}

// number returns the only value of a query; 0 without a row.
func (t *tx) number(query string, args ...any) (n int64, err error) {
	err = t.query(func(stmt *sqlite.Stmt) error {
		n = stmt.ColumnInt64(0)
		return nil
	}, query, args...)
	return n, err
}

// numbers returns the first column of a query.
func (t *tx) numbers(query string, args ...any) (all []int64, err error) {
	err = t.query(func(stmt *sqlite.Stmt) error {
		all = append(all, stmt.ColumnInt64(0))
		return nil
	}, query, args...)
	return all, err
}

func bind(stmt *sqlite.Stmt, i int, value any) {
	switch v := value.(type) {
	case int64:
		stmt.BindInt64(i, v)
	case int32:
		stmt.BindInt64(i, int64(v))
	case int:
		stmt.BindInt64(i, int64(v))
	case bool:
		stmt.BindBool(i, v)
	case string:
		stmt.BindText(i, v)
	case []byte:
		if v == nil {
			v = []byte{}
		}
		stmt.BindBytes(i, v)
	default:
		stmt.BindNull(i)
	}
}

// column copies a blob.
func column(stmt *sqlite.Stmt, i int) []byte {
	b := make([]byte, stmt.ColumnLen(i))
	stmt.ColumnBytes(i, b)
	return b
}

func limitOr(limit, otherwise int) int {
	if limit <= 0 {
		return otherwise
	}
	return limit
}
