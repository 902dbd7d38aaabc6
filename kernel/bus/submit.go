package bus

import (
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// Submit queues commits of an actor, each atomic by itself, and waits while the
// actor has more than its share on the way. done learns the receipts, in the order
// of submission, of one or several commits at a time; it must not block.
func (b *Bus) Submit(a *Actor, commits []*busv1.Commit, done func([]*busv1.CommitReceipt)) {
	for len(commits) > 0 {
		n, size := b.share.Enter(a.ID, len(commits), func(i int) int { return sizeOf(commits[i]) })
		s := &submission{bus: b, actor: a, size: size, done: done, commits: commits[:n:n], parts: make([]part, n)}
		for i, c := range s.commits {
			s.parts[i].valid = payloadsValid(c.GetEffects())
		}
		b.store.Submit(journal.Update{Apply: s.apply, Undo: s.undo, Done: s.settled})
		commits = commits[n:]
	}
}

// submission is commits that came together. They are one update of the journal,
// which saves what each update costs, with a part for each commit.
type submission struct {
	bus     *Bus
	actor   *Actor
	commits []*busv1.Commit
	size    int
	done    func([]*busv1.CommitReceipt)
	parts   []part

	applied, written time.Time
}

// part is one commit while it is applied.
type part struct {
	tx      Tx
	valid   bool // the payloads were looked at
	receipt busv1.CommitReceipt
	err     error
}

func (s *submission) apply(j journal.Tx) error {
	s.applied = time.Now()
	for i := range s.parts {
		p := &s.parts[i]
		if p.err = j.Part(func() error { return s.applyPart(j, p, s.commits[i]) }); p.err != nil {
			s.bus.rollback(&p.tx)
		}
	}
	s.written = time.Now()
	return nil
}

func (s *submission) applyPart(j journal.Tx, p *part, c *busv1.Commit) error {
	tx := &p.tx
	tx.begin(s.bus, s.actor, j)
	tx.valid = p.valid
	p.receipt = busv1.CommitReceipt{}
	if c.GetId() != "" {
		stored, found, err := tx.CommitReceipt(s.actor.ID, c.GetId())
		if err != nil {
			return err
		}
		if found {
			return proto.Unmarshal(stored, &p.receipt)
		}
	}
	if err := tx.holdToken(c.GetLane()); err != nil {
		return err
	}
	results, err := tx.Apply(c.GetEffects())
	if err != nil {
		return err
	}
	p.receipt.Results = results
	if c.GetId() != "" {
		stored, err := proto.Marshal(&p.receipt)
		if err == nil {
			err = tx.PutCommitReceipt(s.actor.ID, c.GetId(), stored)
		}
		if err != nil {
			return err
		}
	}
	return tx.rest()
}

func (s *submission) undo() {
	for i := range slices.Backward(s.parts) {
		if p := &s.parts[i]; p.err == nil {
			s.bus.rollback(&p.tx)
		}
	}
}

func (s *submission) settled(err error) {
	var applying, took time.Duration
	if !s.written.IsZero() {
		applying, took = s.written.Sub(s.applied), time.Since(s.written)
	}
	s.bus.share.Leave(s.actor.ID, len(s.parts), s.size, applying, took)
	receipts := make([]*busv1.CommitReceipt, len(s.parts))
	stand := make([]*Tx, 0, len(s.parts))
	for i := range s.parts {
		p := &s.parts[i]
		if p.err == nil {
			p.err = err
		}
		if p.err != nil {
			receipts[i] = &busv1.CommitReceipt{Error: contract.ToProto(p.err)}
			continue
		}
		receipts[i] = &p.receipt
		stand = append(stand, &p.tx)
	}
	if len(stand) > 0 {
		s.bus.committed(stand...)
	}
	s.done(receipts)
}

// sizeOf is about how large a commit is.
func sizeOf(c *busv1.Commit) (size int) {
	for _, e := range c.GetEffects() {
		switch k := e.GetKind().(type) {
		case *busv1.Effect_Publish:
			size += 64 + len(k.Publish.GetPayload())
		case *busv1.Effect_Put:
			size += 64 + len(k.Put.GetValue())
		default:
			size += proto.Size(e)
		}
	}
	return size
}
