// Package launch starts the processes of extensions for the kernel: each in a process
// group, a sandbox and a socket directory of its own, connected through go-plugin.
// The kernel's supervisor decides when; this package knows how.
//
// # Promises
//
//   - A process gets the environment of its Spec and nothing else, and no stdin. On Linux
//     it dies with this process, however that ends, and its sandbox applies before any
//     code of the extension runs.
//   - Process.Context ends when the process has exited, without polling, also if a
//     grandchild holds its output open. When Process.Done is closed, a little later, its
//     whole process group is dead.
//   - Kill works at any time, also during a start. The first reason is kept.
//   - A start that fails leaves no process and no socket, and the error says what to do.
//   - Its output is read at a bounded rate; beyond it, its writes block.
//   - With Processes that watch, on Linux, no descendant of an extension outlives it, in
//     any session or process group.
//
// A Launcher holds one operating system thread until Close, and is safe for concurrent
// use.
//
// # Not promised
//
// Without Processes that watch, a grandchild that leaves its process group (setsid)
// escapes the kill; if this process was killed with -9, it runs until the next Launcher
// finds it by its environment. It holds no resource of the kernel. Where the system has
// no parent-death signal (macOS), a process outlives a kernel that was killed with -9
// until it notices the lost connection, as the SDK does at once; the next Launcher on the
// same runtime directory kills the processes of the earlier one.
package launch

import (
	"iter"

	"github.com/hashicorp/go-hclog"
)

// Options of a Launcher. All are required.
type Options struct {
	// RunDir is a short path for the sockets of extensions, used by one Launcher at a
	// time. New makes it private, and removes the sockets of an earlier kernel.
	RunDir string
	// Output returns what takes the output of a process that serves extensions. It is
	// called once for each start.
	Output    func(ids []string) Output
	Processes Processes
	Log       hclog.Logger
}

// Output takes what one process writes. It is safe for concurrent use.
type Output interface {
	// Line takes a line of the stream "stdout" or "stderr". It must not block for long.
	Line(stream string, line []byte)
	// Conceal redacts secrets from now on, in lines and in Last.
	Conceal(secrets iter.Seq[string])
	// Clean returns a text with these secrets redacted.
	Clean(text string) string
	// Last returns the end of what was written: in one line, and in full.
	Last() (summary, full string)
}

// Launcher starts processes of extensions.
type Launcher struct {
	options Options
	spawner *spawner
}

// New prepares the runtime directory, and ends what an earlier kernel left there.
func New(o Options) (*Launcher, error) {
	dir, err := prepareRunDir(o)
	if err != nil {
		return nil, err
	}
	o.RunDir = dir
	return &Launcher{options: o, spawner: newSpawner()}, nil
}

// Close frees the thread. On Linux the end of this process, not Close, ends the processes
// that still run. After it, starts fail.
func (l *Launcher) Close() { l.spawner.close() }
