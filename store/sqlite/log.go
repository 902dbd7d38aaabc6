package sqlite

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/switchboard-run/switchboard/kernel/journal"
)

// The log of changes (SQLite's write-ahead log) is a header and frames: each a
// page, with a checksum over itself and all before it. SQLite reads it up to the
// first frame that does not fit, and forgets the rest.
const (
	logHeader   = 32
	frameHeader = 24
)

// checkLog tells a damaged log from a torn one. A power loss during a commit tears
// the end of the log, after all reported commits: that is normal. A commit begins
// only after the previous one is on the disk. So a complete commit after a frame
// that does not fit means that the frame was lost later, and SQLite would silently
// drop reported commits.
//
// The log must also belong to the store: SQLite applies any log that it finds, even
// that of another or a replaced store.
func checkLog(path string) error {
	name := path + "-wal"
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return checkIndex(path)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", hintOpen, err)
	}
	defer f.Close()
	store, err := readHead(path)
	if err != nil {
		return err
	}
	lost, w, err := lostFrom(bufio.NewReaderSize(f, 1<<16), store.pages)
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	if lost < 0 {
		return store.fits(name, w)
	}
	return fmt.Errorf("%w (the log of its newest changes, %s, is damaged at byte %d, and accepted changes follow): "+
		"%s; to continue without them: truncate -s %[3]d %[2]s",
		journal.ErrDamaged, name, lost, hintDamaged)
}

// lostFrom returns the offset from which SQLite would drop commits (-1: none), and
// the walk over the log of a store with this number of pages.
func lostFrom(r io.Reader, pages uint32) (int64, walk, error) {
	var head [logHeader]byte
	var w walk
	if n, err := io.ReadFull(r, head[:]); err != nil {
		if n == 0 || errors.Is(err, io.ErrUnexpectedEOF) {
			return -1, w, nil // no commit yet
		}
		return -1, w, err
	}
	magic, pageSize := binary.BigEndian.Uint32(head[:]), binary.BigEndian.Uint32(head[8:])
	big := magic&1 != 0
	sum := checksum{}.over(big, head[:24])
	if magic&^1 != 0x377f0682 || sum != sumAt(head[24:]) || pageSize < 512 || pageSize > 1<<16 {
		// The header is synced before the first frame is written.
		if n, err := io.CopyN(io.Discard, r, frameHeader+512); n < frameHeader+512 {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return -1, w, err
		}
		return 0, w, nil
	}
	w = walk{sum: sum, damagedAt: -1, pageSize: pageSize, stored: pages, beyond: map[uint32]bool{}}
	frame := make([]byte, frameHeader+int(pageSize))
	for at := int64(logHeader); ; at += int64(len(frame)) {
		if _, err := io.ReadFull(r, frame); err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				err = nil
			}
			return -1, w, err
		}
		if w.step(big, at, head[16:24], frame) {
			return w.damagedAt, w, nil
		}
	}
}

// walk is the state of reading the frames of a log.
type walk struct {
	sum       checksum // of the previous frame
	damagedAt int64    // offset of the first frame that does not fit; -1: none yet
	committed bool     // the previous frame ends a commit that SQLite does not read

	pageSize, stored uint32
	pages            uint32          // size of the store after the commits that SQLite reads; 0: none
	beyond           map[uint32]bool // pages of the log that are beyond the store's end
	counters         []uint32        // first and last change counter in the log
}

// step processes a frame and reports whether it proves that commits would be lost: it
// was written after a commit that follows the damage.
func (w *walk) step(big bool, at int64, salt, frame []byte) (lost bool) {
	known := string(frame[8:16]) == string(salt) && binary.BigEndian.Uint32(frame) != 0
	follows := known && w.sum.over(big, frame[:8]).over(big, frame[frameHeader:]) == sumAt(frame[16:])
	if !follows && w.damagedAt < 0 {
		w.damagedAt = at
	}
	if w.damagedAt < 0 {
		w.read(frame)
	}
	if w.damagedAt >= 0 {
		if follows && w.committed {
			return true
		}
		w.committed = known && binary.BigEndian.Uint32(frame[4:]) != 0
	}
	w.sum = sumAt(frame[16:])
	return false
}

// checksum is SQLite's checksum of the log.
type checksum [2]uint32

func (c checksum) over(big bool, b []byte) checksum {
	if big {
		for ; len(b) >= 8; b = b[8:] {
			c[0] += binary.BigEndian.Uint32(b) + c[1]
			c[1] += binary.BigEndian.Uint32(b[4:]) + c[0]
		}
		return c
	}
	for ; len(b) >= 8; b = b[8:] {
		c[0] += binary.LittleEndian.Uint32(b) + c[1]
		c[1] += binary.LittleEndian.Uint32(b[4:]) + c[0]
	}
	return c
}

func sumAt(b []byte) checksum {
	return checksum{binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])}
}
