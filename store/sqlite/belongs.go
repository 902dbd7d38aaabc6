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
	counterAt = 24      // offset in the first page of the change counter
	lockByte  = 1 << 30 // SQLite never writes the page with this byte
	hintLog   = "if the store was replaced by hand, put back the old one, " +
		"or move that file away to continue without the changes in it"
)

// head is the header of a store.
type head struct {
	pageSize, pages uint32 // pages: from the length of the file
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
	if h.pageSize > 0 { // else SQLite reports damage
		h.pages = uint32(info.Size() / int64(h.pageSize)) //nolint:gosec // SQLite numbers pages with 32 bits
	}
	return h, nil
}

// read processes a frame that SQLite reads if its commit is complete.
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

// fits returns an error if the log was evidently not written for the store: a store
// never becomes shorter, and its missing pages are in the log.
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
	return fmt.Errorf("%w (the log of its newest changes, %s, does not belong to it, or the store lacks a part): %s; %s",
		journal.ErrDamaged, name, hintDamaged, hintLog)
}

// missing counts the pages that are neither in the store nor in its log.
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

// checkIndex refuses a store whose log was deleted with commits in it. SQLite keeps
// the index of the log in another file.
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
		return nil //nolint:nilerr // too short for an index
	}
	last, done := binary.NativeEndian.Uint32(b[16:]), binary.NativeEndian.Uint32(b[96:])
	if string(b[:48]) != string(b[48:96]) || binary.NativeEndian.Uint32(b[:]) != version || last <= done {
		return nil
	}
	return fmt.Errorf("%w (the log of its newest changes, %[2]s-wal, is gone, with accepted changes in it): "+
		"put it back, or %[3]s; to continue without them: rm %[2]s-shm",
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
