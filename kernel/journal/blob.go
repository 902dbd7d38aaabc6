package journal

import "errors"

// ErrNoBlob means that a blob is not stored.
var ErrNoBlob = errors.New("the file is not stored")

// Blob is a file that messages, values or histories name. The journal knows it; its
// bytes are elsewhere.
type Blob struct {
	Hash      string // SHA-256 of its bytes, in hexadecimal
	Size      int64  // bytes
	Owner     string // the extension that stored it first
	CreatedAt int64  // Unix microseconds
}

// Keeper is what keeps a blob: an event, a session, a value of an extension, or, for a
// while, the extension that stored it. The keeper's end ends the keeping.
type Keeper struct {
	Kind  KeeperKind
	ID    int64  // the seq of an event, the id of a session
	Owner string // of a value or a hold
	Key   string // of a value
}

// KeeperKind is the kind of a Keeper.
type KeeperKind int

// The kinds of keepers. The numbers are stored.
const (
	KeptByEvent   KeeperKind = 1
	KeptBySession KeeperKind = 2
	KeptByValue   KeeperKind = 3
	KeptByHold    KeeperKind = 4
)
