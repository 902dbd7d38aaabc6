package sqlite

import "os"

const (
	// logSize is the size of the log at which SQLite copies it into the store and starts
	// again at its beginning.
	logSize = 4 << 20
	// maxLog is the size to which a larger log is truncated. It grows while a backup reads
	// the store.
	maxLog = 64 << 20
	// logPiece is reserved at a time, so that no commit waits long.
	logPiece = 256 << 10
	// firstGroups is the number of groups after a start without a reservation: the commit
	// after one takes longer, because it also syncs the piece.
	firstGroups = 32
)

// zeros is what reserveLog writes. The system maps no memory for it.
var zeros [logPiece]byte

// reserveLog extends the log ahead of its contents, as a sync takes longer when the
// file grows. The writer calls it when no commit waits, until the log has logSize.
// SQLite reads zeros as the end of the log. The lock of a transaction excludes writes
// of other processes. On a full disk the log grows with its contents.
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
		_, err = s.log.WriteAt(zeros[:min(logPiece, logSize-info.Size())], info.Size())
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
