package supervisor

import (
	"errors"

	"github.com/switchboard-run/switchboard/contract/sandbox"
)

// Guard tells which limit the process is over; nil: none. With disk it looks at
// the rooms and at open files that have no name, too, which takes longer; a pid of
// 0 means that the process has not started yet. An error that wraps ErrNoRoom
// keeps an extension from being started until there is room. A Guard is safe
// for concurrent use.
type Guard func(pid int, l sandbox.Limits, disk bool) error

// ErrNoRoom means that a directory holds more than it may.
var ErrNoRoom = errors.New("no room")
