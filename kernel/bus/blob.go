package bus

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// mayUse refuses files that the actor of the commit may not use.
func (t *Tx) mayUse(hashes []string) error {
	if t.Actor.kernel {
		return nil
	}
	for _, hash := range hashes {
		if _, err := FindBlob(t, t.Actor, t.Lease, hash); err != nil {
			return err
		}
	}
	return nil
}

// KeepBlobs lets a keeper keep files that the actor of the commit may use.
func (t *Tx) KeepBlobs(k journal.Keeper, hashes []string) error {
	if err := t.mayUse(hashes); err != nil {
		return err
	}
	err := t.Tx.KeepBlobs(k, hashes)
	if errors.Is(err, journal.ErrNoBlob) {
		return fmt.Errorf("%w: %w: store it first, and name it within the hour", contract.ErrNotFound, err)
	}
	return err
}

// FindBlob returns a file that an actor may use: one that it stored a short while ago or
// that its values keep and, under a lease, one that the event or the session keeps. The
// name is the hash or, within the session, at least contract.ReferenceDigits of it.
func FindBlob(r journal.Reader, a *Actor, l *Lease, name string) (none journal.Blob, err error) {
	notFound := fmt.Errorf("%w: there is no file %q here", contract.ErrNotFound, name)
	if len(name) < contract.ReferenceDigits {
		return none, notFound
	}
	keepers := []journal.Keeper{{Kind: journal.KeptByHold, Owner: a.ID}, {Kind: journal.KeptByValue, Owner: a.ID}}
	if l != nil {
		session := journal.Keeper{Kind: journal.KeptBySession, ID: l.Session}
		found, err := r.KeptBlobs(session, name, 2)
		switch {
		case err != nil:
			return none, err
		case len(found) == 1:
			return found[0], nil
		case len(found) > 1:
			return none, fmt.Errorf("%w: %q means several files: give more digits", contract.ErrInvalid, name)
		}
		keepers = append(keepers, journal.Keeper{Kind: journal.KeptByEvent, ID: l.Event.GetSeq()})
	}
	b, err := r.Blob(name)
	if err != nil || b == nil {
		return none, cmp.Or(err, notFound)
	}
	for _, k := range keepers {
		if kept, err := r.Keeps(k, name); kept || err != nil {
			return *b, err
		}
	}
	return none, notFound
}
