package sessions

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/extensions/sessions/index"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

const (
	// idleTime is how long the index stays open after a search.
	idleTime = time.Minute
	// sweepTime is how long deleted sessions stay in the index if no one searches.
	sweepTime = time.Hour
	// batch is how many rows are read at once, together how many are added at once, and
	// recent how many sessions are compared with the index before a search.
	batch    = 200
	together = 2000
	recent   = 64
)

// finder holds the index of what was said. It reads the histories when someone searches,
// from where it stopped: until then it costs nothing.
type finder struct {
	read adminv1.ReadClient
	dir  string
	log  hclog.Logger

	lock  chan struct{} // holds one element while locked; guards the fields below
	index *index.Index  // nil: closed
	known map[string]index.Session
	whole bool // all sessions were compared since the index was opened
	close *time.Timer

	unsaved []index.Batch // that were read
	rows    int           // of them
}

func newFinder(read adminv1.ReadClient, dataDir string, log hclog.Logger) *finder {
	return &finder{read: read, dir: filepath.Join(dataDir, "index"), log: log, lock: make(chan struct{}, 1)}
}

// use calls f with the index of all that was said until now. An index that turns out to be
// damaged is made again.
func (x *finder) use(ctx context.Context, f func(*index.Index) error) error {
	select {
	case x.lock <- struct{}{}:
		defer func() { <-x.lock }()
	case <-ctx.Done():
		return ctx.Err()
	}
	err := x.try(ctx, f)
	if err == nil || ctx.Err() != nil || !errors.Is(err, index.ErrDamaged) {
		return err
	}
	x.log.Warn("use the search index: making it again", "error", err)
	x.shut()
	if err := index.Remove(x.dir); err != nil {
		return err
	}
	return x.try(ctx, f)
}

func (x *finder) try(ctx context.Context, f func(*index.Index) error) error {
	if x.index == nil {
		if err := x.open(); err != nil {
			return err
		}
	}
	defer x.close.Reset(idleTime)
	if err := x.follow(ctx); err != nil {
		return err
	}
	return f(x.index)
}

// save adds what was read.
func (x *finder) save() error {
	unsaved := x.unsaved
	x.unsaved, x.rows = nil, 0
	if len(unsaved) == 0 {
		return nil
	}
	if err := x.index.Add(unsaved...); err != nil {
		return err
	}
	for _, b := range unsaved {
		x.known[b.ID] = b.Session
	}
	return nil
}

func (x *finder) open() error {
	opened, err := index.Open(x.dir)
	if err != nil {
		return err
	}
	known, err := opened.Sessions()
	if err != nil {
		return errors.Join(err, opened.Close())
	}
	x.index, x.known, x.close = opened, known, time.AfterFunc(idleTime, x.rest)
	return nil
}

// rest closes an index that is not used.
func (x *finder) rest() {
	select {
	case x.lock <- struct{}{}:
		x.shut()
		<-x.lock
	default: // it is used: that starts the time again
	}
}

// stop closes the index at the end of the extension.
func (x *finder) stop(context.Context) error {
	x.lock <- struct{}{}
	x.shut()
	<-x.lock
	return nil
}

// shut closes the index. The caller holds the lock.
func (x *finder) shut() {
	if x.index == nil {
		return
	}
	x.close.Stop()
	if err := x.index.Close(); err != nil {
		x.log.Warn("close the search index", "error", err)
	}
	x.index, x.known, x.whole = nil, nil, false
}

// sweep removes deleted sessions from an index that exists, from time to time.
func (x *finder) sweep(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(sweepTime):
		}
		if !index.Exists(x.dir) {
			continue
		}
		err := x.use(ctx, func(*index.Index) error {
			x.whole = false
			return x.follow(ctx)
		})
		if err != nil && ctx.Err() == nil {
			x.log.Warn("remove deleted sessions from the search index", "error", err)
		}
	}
}

// follow adds what was said since the last time. The most recently active sessions come
// first; the rest of them is compared once after the index was opened. What was read when it
// is cancelled is kept.
func (x *finder) follow(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, x.save()) }()
	for limit := int32(recent); ; limit *= 4 {
		if !x.whole {
			limit = math.MaxInt32
		}
		all, err := admin.Sessions(ctx, x.read, &adminv1.SessionsRequest{Limit: limit})
		if err != nil {
			return err
		}
		settled := 0 // of the sessions at the end of the list: those without news
		for _, s := range all {
			changed, err := x.catchUp(ctx, s.Session)
			if err != nil {
				return err
			}
			if settled++; changed {
				settled = 0
			}
		}
		if err := x.save(); err != nil {
			return err
		}
		if !x.whole {
			if err := x.forget(all); err != nil {
				return err
			}
			x.whole = true
			return nil
		}
		if len(all) < int(limit) || settled > len(all)/2 {
			return nil
		}
	}
}

// forget removes the sessions that are not among all.
func (x *finder) forget(all []admin.NamedSession) error {
	alive := map[string]bool{}
	for _, s := range all {
		alive[s.GetId()] = true
	}
	for id := range x.known {
		if !alive[id] {
			if err := x.remove(id); err != nil {
				return err
			}
		}
	}
	return nil
}

func (x *finder) remove(id string) error {
	if err := x.index.RemoveSession(id); err != nil {
		return err
	}
	delete(x.known, id)
	return nil
}

// catchUp reads the rows of a session that the index lacks, and adds them with others.
func (x *finder) catchUp(ctx context.Context, s *adminv1.Session) (changed bool, err error) {
	have, ok := x.known[s.GetId()]
	if ok && (have.Created != s.GetCreatedAtUs() || have.Rows > s.GetRows()) { // another one: the store was replaced
		if err := x.remove(s.GetId()); err != nil {
			return true, err
		}
		have = index.Session{}
	}
	now := index.Session{
		ID: s.GetId(), Agent: s.GetAgent(), Channel: s.GetChannel(), Created: s.GetCreatedAtUs(), Rows: have.Rows,
	}
	for now.Rows < s.GetRows() {
		end := min(now.Rows+batch, s.GetRows())
		rows, err := admin.History(ctx, x.read, &adminv1.HistoryRequest{
			Session: s.GetId(), Before: end + 1, Limit: int32(end - now.Rows), //nolint:gosec // at most batch
		})
		if errors.Is(err, contract.ErrNotFound) { // deleted meanwhile
			return true, errors.Join(x.save(), x.remove(s.GetId()))
		}
		if err != nil {
			return true, err
		}
		var texts []index.Text
		for _, row := range rows {
			if text := said(row.Entry); text != "" && row.GetSeq() > now.Rows {
				texts = append(texts, index.Text{Seq: row.GetSeq(), At: row.GetCreatedAtUs(), Text: text})
			}
		}
		now.Rows, changed = end, true
		x.unsaved, x.rows = append(x.unsaved, index.Batch{Session: now, Texts: texts}), x.rows+len(rows)
		if x.rows >= together {
			if err := x.save(); err != nil {
				return true, err
			}
		}
	}
	return changed, nil
}

// said returns what a row says that a person can search for: inputs and answers with the
// names of their files; empty: nothing.
func said(e *busv1.Entry) string {
	if e.GetKind() != contract.EntryInput && e.GetKind() != contract.EntryAnswer {
		return ""
	}
	parts := []string{admin.Gist(e.GetText())}
	for _, a := range e.GetAttachments() {
		parts = append(parts, a.GetName())
	}
	return strings.TrimSpace(strings.Join(parts, "\n"))
}
