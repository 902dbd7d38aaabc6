package sqlite

import "os"

const (
	// logSize is what the log of changes grows to before SQLite copies it into the
	// store and writes it anew from its beginning.
	logSize = 4 << 20
	// logMost is what it is cut to when it has grown further, because a backup that
	// is being made needed what was in it.
	logMost = 64 << 20
	// logPiece is what is reserved of it at a time, so that nobody waits for long.
	logPiece = 256 << 10
	// firstGroups are those of a start, which somebody waits for: the commit behind
	// a piece takes longer, as it makes that durable too.
	firstGroups = 32
)

// reserveLog has the log grow ahead of what is written to it: a commit that
// makes the file longer takes longer to become durable than one within it. The
// writer calls it when nothing is waiting, until the log has its size. SQLite
// takes zeros for the end of the log. The lock of a transaction keeps whoever
// else has the store open from writing there meanwhile. Without room on the disk
// the log grows as it is written.
func (s *Store) reserveLog() {
	if s.groups++; s.log == nil || s.groups <= firstGroups {
		return
	}
	t := &tx{conn: s.write, store: s}
	if t.exec("BEGIN IMMEDIATE") != nil {
		return
	}
	info, err := s.log.Stat()
	if err == nil && info.Size() < logSize {
		_, err = s.log.WriteAt(make([]byte, min(logPiece, logSize-info.Size())), info.Size())
	}
	_ = t.exec("COMMIT") // of nothing
	if err != nil || info.Size() >= logSize {
		_ = s.log.Close()
		s.log = nil
	}
}

// openLog opens the log for reserveLog; nil if it is not there.
func openLog(path string) *os.File {
	log, err := os.OpenFile(path+"-wal", os.O_RDWR, 0)
	if err != nil {
		return nil
	}
	return log
}
