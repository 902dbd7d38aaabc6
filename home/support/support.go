// Package support detects which parts of a sandbox (package sandbox) this system can
// enforce, and describes them for the owner.
package support

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/switchboard-run/switchboard/contract/sandbox"
	"github.com/switchboard-run/switchboard/contract/words"
)

// System is what a system can enforce.
type System struct {
	Landlock int  // version of its interface; 0: none
	Seccomp  bool // filters of system calls
}

// The first versions of Landlock's interface that limit something.
const (
	abiPorts   = 4
	abiScopes  = 6
	abiSockets = 9 // sockets in the file system
	abiUDP     = 10
)

// Detect asks the system, once.
var Detect = sync.OnceValue(detect)

// Levels of a sandbox.
const (
	LevelFull    = "full"    // files, network and signals are limited
	LevelPartial = "partial" // some of them are
	LevelNone    = "none"
)

// Level returns how much of a sandbox the system enforces.
func (s System) Level() string {
	switch {
	case s.Landlock >= abiScopes && s.Seccomp:
		return LevelFull
	case s.Landlock > 0 || s.Seccomp:
		return LevelPartial
	}
	return LevelNone
}

// String describes in one line what is enforced, and what is not.
func (s System) String() string {
	if s.Level() == LevelNone {
		return words.Sprintf("this system cannot limit extensions: no Landlock, no seccomp")
	}
	var does, lacks []string
	sort := func(what string, is bool) {
		if is {
			does = append(does, what)
		} else {
			lacks = append(lacks, what)
		}
	}
	sort(words.Sprintf("files"), s.Landlock > 0)
	sort(words.Sprintf("whether there is a network"), s.Seccomp)
	sort(words.Sprintf("TCP ports"), s.Landlock >= abiPorts)
	sort(words.Sprintf("signals"), s.Landlock >= abiScopes)
	sort(words.Sprintf("sockets of other programs"), s.Landlock >= abiSockets)
	sort(words.Sprintf("UDP"), s.Landlock >= abiUDP)
	all := strings.Join(does, "; ")
	if len(lacks) == 0 {
		return words.Sprintf("limits: %v (Landlock ABI %d)", all, s.Landlock)
	}
	return words.Sprintf("limits: %v. Does not limit: %v (Landlock ABI %d)", all, strings.Join(lacks, "; "), s.Landlock)
}

// Summary says in a few words what a process with the policy may use of the
// network, as far as the system enforces it.
func (s System) Summary(p *sandbox.Policy) string {
	switch n := p.Network; {
	case n == nil && s.Seccomp:
		return words.Sprintf("no network")
	case n == nil && s.Landlock >= abiPorts:
		return words.Sprintf("no TCP")
	case n == nil || n.Any || s.Landlock < abiPorts:
		return words.Sprintf("any network")
	default:
		text := words.Sprintf("TCP to port %s", ports(n.Connect))
		if len(n.Listen) > 0 {
			text += "; " + words.Sprintf("listens on %s", ports(n.Listen))
		}
		return text
	}
}

func ports(all []uint16) string {
	var shown []string
	for _, p := range slices.Sorted(slices.Values(all)) {
		shown = append(shown, strconv.Itoa(int(p)))
	}
	return strings.Join(shown, ", ")
}
