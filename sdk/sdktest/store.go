package sdktest

import (
	"sync"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/store/sqlite"
)

// news wakes everyone who waits for a change.
type news struct {
	mu      sync.Mutex
	changed chan struct{} // closed and replaced at every change
}

func newNews() *news { return &news{changed: make(chan struct{})} }

func (n *news) tell() {
	n.mu.Lock()
	defer n.mu.Unlock()
	close(n.changed)
	n.changed = make(chan struct{})
}

// next is closed at the next change.
func (n *news) next() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.changed
}

// store is a store that tells what was committed, counts what the extension under
// test has committed, and fails commits of it on demand.
type store struct {
	journal.Store
	owner func() string
	news  *news

	mu       sync.Mutex
	failures []error // of the extension's next commits
	commits  int     // of the extension
}

func openStore(path string, owner func() string, n *news) (*store, error) {
	s, err := sqlite.OpenWith(path, sqlite.Options{Volatile: true})
	if err != nil {
		return nil, err
	}
	return &store{Store: s, owner: owner, news: n}, nil
}

// Submit implements journal.Store.
func (s *store) Submit(u journal.Update) {
	apply, done := u.Apply, u.Done
	by := &author{store: s}
	u.Apply = func(tx journal.Tx) error { return apply(&authored{tx, by}) }
	u.Done = func(err error) {
		s.mu.Lock()
		if by.extension && err == nil {
			s.commits++ // before anyone hears that it is done
		}
		s.mu.Unlock()
		if done != nil {
			done(err)
		}
		s.news.tell()
	}
	s.Store.Submit(u)
}

// author finds out whether an update is the extension's.
type author struct {
	store     *store
	extension bool
	failure   error
}

// wrote says that the update writes what is of the owner. The first write of the
// extension decides whether the update fails.
func (a *author) wrote(owner string) error {
	if owner != a.store.owner() {
		return nil
	}
	if a.extension {
		return a.failure
	}
	a.extension = true
	s := a.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.failures) > 0 {
		a.failure, s.failures = s.failures[0], s.failures[1:]
	}
	return a.failure
}

type authored struct {
	journal.Tx
	by *author
}

// AppendEvent implements journal.Tx.
func (t *authored) AppendEvent(e *busv1.Event) error {
	if err := t.by.wrote(e.GetSource()); err != nil {
		return err
	}
	return t.Tx.AppendEvent(e)
}

// KVPut implements journal.Tx.
func (t *authored) KVPut(owner, key string, value []byte) (int64, error) {
	if err := t.by.wrote(owner); err != nil {
		return 0, err
	}
	return t.Tx.KVPut(owner, key, value)
}

// KVDelete implements journal.Tx.
func (t *authored) KVDelete(owner, key string) error {
	if err := t.by.wrote(owner); err != nil {
		return err
	}
	return t.Tx.KVDelete(owner, key)
}

// FailCommits refuses the next n commits in which the extension publishes, or writes
// its store, with an error: contract.ErrConflict, contract.ErrFull. The kernel deals
// with that as always: it repeats a tool call after a conflict, for example.
func (k *Kernel) FailCommits(n int, err error) {
	k.store.mu.Lock()
	defer k.store.mu.Unlock()
	for range n {
		k.store.failures = append(k.store.failures, err)
	}
}

// Commits counts the commits in which the extension has published, or written its
// store.
func (k *Kernel) Commits() int {
	k.store.mu.Lock()
	defer k.store.mu.Unlock()
	return k.store.commits
}
