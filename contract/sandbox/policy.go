// Package sandbox is how the process of an extension may use the machine: files,
// the network, other processes, and some resources. The caller of the kernel makes
// a Policy of a manifest; the program that runs the extension puts it in force for
// itself before any code of the extension runs, and all processes that it starts
// inherit it.
//
// # Promises
//
// A policy that the system can enforce is enforced, or the process does not
// start: nothing fails open. Once in force it cannot be undone, not even by root.
// What a system cannot enforce is named below.
//
//   - Files (Linux with Landlock): what the policy does not name cannot be
//     opened, made, renamed or removed.
//   - Network (Linux): without a Network there are no sockets of the internet
//     at all (seccomp). With one, TCP goes to the ports it names (Landlock ABI 4).
//   - Signals and abstract sockets (Landlock ABI 6) do not leave the sandbox.
//   - The memory and the environment of processes outside cannot be read.
//   - Limits, priority and processors of processes outside cannot be changed;
//     there is no memory, and there are no queues and keys, that all programs of
//     the user share (seccomp).
//
// # Not promised
//
// Landlock knows ports and no host names. It limits UDP, which resolves names, from
// ABI 10 on, and sockets of other programs in the file system from ABI 9 on. A
// process can see names, sizes and times of all of the user's files, and change
// times; without KeepModes also modes and owners. Without Landlock (other systems,
// old kernels) files are not limited; without seccomp (other processors) system
// calls are not.
package sandbox

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
)

// Policy lists what a process may use. Paths are absolute and lead over no symbolic
// link; those that do not exist, or do, are passed over.
type Policy struct {
	Read    []string `json:"read,omitempty"`    // files, or directories with all below: read
	Execute []string `json:"execute,omitempty"` // likewise: read and run
	Write   []string `json:"write,omitempty"`   // likewise: read, change, make and remove
	Sockets []string `json:"sockets,omitempty"` // directories with sockets that it may connect to
	Network *Network `json:"network,omitempty"` // nil: none
	// Background lets the kernel and others compute first.
	Background bool `json:"background,omitempty"`
	// KeepModes keeps modes and owners of files as they are, but for those of
	// files that the process has opened.
	KeepModes bool `json:"keep_modes,omitempty"`
	// OpenFiles bounds the descriptors of each process, FileSize the bytes of each
	// file. Zero: as the kernel has it.
	OpenFiles uint64 `json:"open_files,omitempty"`
	FileSize  uint64 `json:"file_size,omitempty"`
}

// Network is the access of a process to the internet.
type Network struct {
	Any     bool     `json:"any,omitempty"`     // connect to every port
	Connect []uint16 `json:"connect,omitempty"` // ports that it may connect to
	Listen  []uint16 `json:"listen,omitempty"`  // ports that it may listen on
}

// Union is the policy of extensions that share a process: all that any of them may.
func Union(a, b *Policy) *Policy {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	u := &Policy{
		Read: union(a.Read, b.Read), Execute: union(a.Execute, b.Execute), Write: union(a.Write, b.Write),
		Sockets:    union(a.Sockets, b.Sockets),
		Background: a.Background && b.Background, KeepModes: a.KeepModes && b.KeepModes,
		OpenFiles: max(a.OpenFiles, b.OpenFiles), FileSize: largest(a.FileSize, b.FileSize), Network: a.Network,
	}
	switch {
	case a.Network == nil:
		u.Network = b.Network
	case b.Network != nil:
		u.Network = &Network{
			Any:     a.Network.Any || b.Network.Any,
			Connect: union(a.Network.Connect, b.Network.Connect), Listen: union(a.Network.Listen, b.Network.Listen),
		}
	}
	return u
}

func union[T interface{ ~string | ~uint16 }](a, b []T) []T {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// largest is the larger of two limits, of which zero is none.
func largest(a, b uint64) uint64 {
	if a == 0 || b == 0 {
		return 0
	}
	return max(a, b)
}

// Variable names the environment variable that a policy is handed over in.
const Variable = "SWITCHBOARD_SANDBOX"

// Encode is the policy as a value of Variable.
func (p *Policy) Encode() string {
	data, err := json.Marshal(p)
	if err != nil {
		panic("sandbox: a policy cannot be encoded: " + err.Error()) // strings and numbers
	}
	return string(data)
}

// Decode reads what Encode has made.
func Decode(text string) (*Policy, error) {
	p := &Policy{}
	if err := json.Unmarshal([]byte(text), p); err != nil {
		return nil, fmt.Errorf("read the sandbox policy in %s: %w", Variable, err)
	}
	return p, nil
}
