package supervisor

import "errors"

// Limits bound the resources of a process of extensions, together with all that it has
// started. Zero is no limit.
type Limits struct {
	Memory    int64 // resident, in bytes
	Processes int
	Alone     bool // the process is known to start no others: they need not be looked for
	Rooms     []Room
	Sockets   string // the directory of its sockets, which counts as disk
}

// Room bounds the files in a directory of one extension.
type Room struct {
	ID    string // of the extension
	Dir   string
	Bytes int64
}

// Guard tells which limit the process is over; nil: none. With disk it looks at
// the rooms and at open files that have no name, too, which takes longer; a pid of
// 0 means that the process has not started yet. An error that wraps ErrNoRoom
// keeps an extension from being started until there is room. A Guard is safe
// for concurrent use.
type Guard func(pid int, l Limits, disk bool) error

// ErrNoRoom means that a directory holds more than it may.
var ErrNoRoom = errors.New("no room")
