package sandbox

import "slices"

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

// Add returns the limits of a process that serves the extensions of both.
func (l Limits) Add(o Limits) Limits {
	return Limits{
		Memory: add(l.Memory, o.Memory), Processes: add(l.Processes, o.Processes),
		Alone: l.Alone && o.Alone, Rooms: slices.Concat(l.Rooms, o.Rooms),
	}
}

// add adds limits, of which zero is no limit.
func add[N int | int64](a, b N) N {
	if a == 0 || b == 0 {
		return 0
	}
	return a + b
}
