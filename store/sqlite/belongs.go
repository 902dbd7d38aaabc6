package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/switchboard-run/switchboard/kernel/journal"
)

const (
	counterAt = 24      // in the first page: how often processes have changed the store
	lockByte  = 1 << 30 // the page that has it is never written
	hintLog   = "if the store was replaced by hand, put back what it was, or move that file away to go on with what the store has without it"
)

// head is what the beginning of a store says.
type head struct {
	pageSize, pages uint32 // pages by the length of the file
	counter         uint32
}

func readHead(path string) (h head, err error) {
	f, err := os.Open(path)
	if err != nil {
		return h, err
	}
	defer f.Close()
	var b [100]byte
	if _, err := io.ReadFull(f, b[:]); err != nil {
		return h, err
	}
	info, err := f.Stat()
	if err != nil {
		return h, err
	}
	if h.pageSize = uint32(binary.BigEndian.Uint16(b[16:])); h.pageSize == 1 {
		h.pageSize = 1 << 16
	}
	h.counter = binary.BigEndian.Uint32(b[counterAt:])
	if h.pageSize > 0 { // else SQLite says that it is no store
		h.pages = uint32(info.Size() / int64(h.pageSize)) //nolint:gosec // SQLite numbers pages with 32 bits
	}
	return h, nil
}

// read takes a frame that SQLite reads, if its commit is whole.
func (w *walk) read(frame []byte) {
	page, size, content := binary.BigEndian.Uint32(frame), binary.BigEndian.Uint32(frame[4:]), frame[frameHeader:]
	if page > w.stored {
		w.beyond[page] = true
	}
	if page == 1 {
		if counter := binary.BigEndian.Uint32(content[counterAt:]); len(w.counters) < 2 {
			w.counters = append(w.counters, counter)
		} else {
			w.counters[1] = counter
		}
	}
	if size > 0 {
		w.pages = size
	}
}

// fits says whether the log was written for the store, as far as can be seen: a
// store never becomes shorter, and what it lacks of its length is in the log.
func (h head) fits(name string, w walk) error {
	switch {
	case w.pages == 0:
		return nil
	case w.pageSize != h.pageSize:
	case h.pages > w.pages || h.missing(w) > 0:
	case len(w.counters) > 0 && (h.counter+1 < w.counters[0] || h.counter > w.counters[len(w.counters)-1]):
	default:
		return nil
	}
	return fmt.Errorf("%w (the log of its newest changes, %s, does not belong to it, or the store lacks a part): %s; %s", journal.ErrDamaged, name, hintDamaged, hintLog)
}

// missing counts the pages that neither the store nor its log has.
func (h head) missing(w walk) (n int) {
	hole := lockByte/h.pageSize + 1
	have := 0
	for page := range w.beyond {
		if page <= w.pages && page != hole {
			have++
		}
	}
	n = int(w.pages-h.pages) - have
	if h.pages < hole && hole <= w.pages {
		n--
	}
	return n
}

// checkIndex refuses a store whose log is gone. The index of the log, which
// SQLite keeps in a file that goes with it, says what was in it.
func checkIndex(path string) error {
	f, err := os.Open(path + "-shm")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", hintOpen, err)
	}
	defer f.Close()
	const version = 3007000
	var b [100]byte
	if _, err := io.ReadFull(f, b[:]); err != nil {
		return nil //nolint:nilerr // it says nothing
	}
	last, done := binary.NativeEndian.Uint32(b[16:]), binary.NativeEndian.Uint32(b[96:])
	if string(b[:48]) != string(b[48:96]) || binary.NativeEndian.Uint32(b[:]) != version || last <= done {
		return nil
	}
	return fmt.Errorf("%w (the log of its newest changes, %[2]s-wal, is gone, and changes that were accepted were in it): put it back, or %[3]s; to go on without them: rm %[2]s-shm",
		journal.ErrDamaged, path, hintDamaged)
}

// checkKinds refuses files of the store that are not regular files.
func checkKinds(path string) error {
	for _, suffix := range []string{"", "-wal", "-shm"} {
		info, err := os.Stat(path + suffix)
		if err == nil && !info.Mode().IsRegular() {
			return fmt.Errorf("%s is not a regular file: move it away. %s", path+suffix, hintOpen)
		}
	}
	return nil
}
