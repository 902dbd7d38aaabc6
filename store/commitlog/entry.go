package commitlog

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
)

// Hash is a SHA-256.
type Hash [sha256.Size]byte

// Position is a place in a log. The zero Position is the beginning.
type Position struct {
	Head int64 // number of the entry; the first one has 1
	Hash Hash  // of the entry
}

// Kind says what an entry does.
type Kind uint8

// The kinds of entries. The numbers are stored.
const (
	// Changes are those of a group of updates.
	Changes Kind = 1
	// Schema raises the schema of the state to Entry.Schema.
	Schema Kind = 2
	// Snapshot replaces the state by the snapshot that is published at this position.
	Snapshot Kind = 3
	// Doubts are Changes that mark what may have happened in commits that were lost.
	Doubts Kind = 4
	// Digest holds a digest of the state at an earlier position.
	Digest Kind = 5
)

// Entry is one entry of a log.
type Entry struct {
	Position    int64 // its number
	Epoch       int64 // of the tenure
	Incarnation [16]byte
	Kind        Kind
	Schema      int   // of the state after it
	Time        int64 // Unix microseconds, never below the predecessor's
	Previous    Hash  // of the predecessor; zero for the first entry
	Hash        Hash  // of this entry without this field
	Body        []byte
}

// At is the position of the entry.
func (e Entry) At() Position { return Position{e.Position, e.Hash} }

// Seal makes an entry the successor of a position.
func Seal(before Position, e Entry) Entry {
	e.Position, e.Previous = before.Head+1, before.Hash
	e.Hash = e.sum()
	return e
}

// Check returns an error of class ErrBroken unless the entry is whole and follows a
// position.
func Check(before Position, e Entry) error {
	switch {
	case e.Position != before.Head+1:
		return fmt.Errorf("%w: entry %d follows entry %d", ErrBroken, e.Position, before.Head)
	case e.Previous != before.Hash:
		return fmt.Errorf("%w: entry %d follows another entry %d than %x", ErrBroken, e.Position, before.Head,
			before.Hash[:4])
	case e.Hash != e.sum():
		return fmt.Errorf("%w: entry %d is damaged", ErrBroken, e.Position)
	}
	return nil
}

// An encoded entry is a header of fixed size and the body.
const (
	format     = 1
	headerSize = 2 + 4 + 3*8 + 16 + 2*sha256.Size + 4
	hashAt     = headerSize - 4 - sha256.Size
	maxBody    = 1 << 30
)

// Encode returns the stored form of an entry.
func (e Entry) Encode() []byte { return append(e.header(), e.Body...) }

func (e Entry) header() []byte {
	b := make([]byte, 0, headerSize+len(e.Body))
	b = append(b, format, byte(e.Kind))
	b = binary.BigEndian.AppendUint32(b, uint32(e.Schema)) //nolint:gosec // a small number
	for _, n := range []int64{e.Position, e.Epoch, e.Time} {
		b = binary.BigEndian.AppendUint64(b, uint64(n)) //nolint:gosec // and back
	}
	b = append(append(append(b, e.Incarnation[:]...), e.Previous[:]...), e.Hash[:]...)
	return binary.BigEndian.AppendUint32(b, uint32(len(e.Body))) //nolint:gosec // at most maxBody
}

// sum is the hash of the entry without its own field.
func (e Entry) sum() (h Hash) {
	e.Hash = Hash{}
	s := sha256.New()
	s.Write(e.header())
	s.Write(e.Body)
	s.Sum(h[:0])
	return h
}

// Decode reads an encoded entry. It checks form and length; Check checks the hashes. The
// body is not copied.
func Decode(b []byte) (e Entry, err error) {
	if len(b) < headerSize {
		return e, fmt.Errorf("%w: an entry of %d bytes", ErrBroken, len(b))
	}
	if b[0] != format {
		return e, fmt.Errorf("%w: an entry of format %d: %w", ErrBroken, b[0], errors.ErrUnsupported)
	}
	e.Kind, e.Schema = Kind(b[1]), int(binary.BigEndian.Uint32(b[2:]))
	for i, n := range []*int64{&e.Position, &e.Epoch, &e.Time} {
		*n = int64(binary.BigEndian.Uint64(b[6+8*i:])) //nolint:gosec // as written
	}
	copy(e.Incarnation[:], b[30:])
	copy(e.Previous[:], b[46:])
	copy(e.Hash[:], b[hashAt:])
	if n := binary.BigEndian.Uint32(b[headerSize-4:]); int64(n) != int64(len(b)-headerSize) || n > maxBody {
		return e, fmt.Errorf("%w: entry %d has %d bytes of %d", ErrBroken, e.Position, len(b)-headerSize, n)
	}
	e.Body = b[headerSize:]
	return e, nil
}
