package sqlite

import "os"

const (
	// logSize is what the log of changes grows to before SQLite copies it into the
	// store and writes it anew from its beginning.
	logSize = 4 << 20
	// logMost is what it is cut to when it has grown further, because a backup that
	// is being made needed what was in it.
	logMost = 64 << 20
	// logPiece is how much of it is reserved at a time, so that no commit waits long.
	logPiece = 256 << 10
	// firstGroups is how many groups of a start reserve nothing: the commit after a
	// piece takes longer, because it makes the piece durable too.
	firstGroups = 32
)

// reserveLog extends the log ahead of its contents: a commit that makes the file
// longer takes longer to become durable. The writer calls it when no commit waits,
// until the log has its size. SQLite reads zeros as the end of the log. The lock of
// a transaction keeps other processes from writing there at the same time. On a full
// disk the log grows with its contents.
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
