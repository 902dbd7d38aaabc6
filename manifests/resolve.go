package manifests

import (
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// Cause says why an extension may not start.
type Cause string

// The causes.
const (
	Invalid     Cause = "invalid"    // its manifest has problems
	Duplicate   Cause = "duplicate"  // its id is taken
	SwitchedOff Cause = "disabled"   // the configuration disables it
	Kernel      Cause = "kernel"     // it requires another version of the kernel
	Clash       Cause = "clash"      // a command is taken
	Missing     Cause = "missing"    // a required extension is not installed
	Dependency  Cause = "dependency" // a required extension does not start
	Cycle       Cause = "cycle"      // it requires itself through others
	Refused     Cause = "refused"    // its permissions are not allowed
	Consent     Cause = "consent"    // the owner did not allow what it asks for
)

// Disabled is an extension that may not start, and why.
type Disabled struct {
	ID     string
	File   string
	Cause  Cause
	Reason string   // for people
	Others []string // the extensions named in the reason
}

// Set is the result of Resolve.
type Set struct {
	// Levels has the extensions that may start: those of a level require only ones of
	// earlier levels. Each level is in the order of the entries.
	Levels [][]*Manifest
	// Disabled has the others, in the order of the entries.
	Disabled []Disabled
}

// Enabled returns the manifest of an extension that may start, else nil.
func (s *Set) Enabled(id string) *Manifest {
	for _, level := range s.Levels {
		for _, m := range level {
			if m.ID == id {
				return m
			}
		}
	}
	return nil
}

// Options configure Resolve.
type Options struct {
	KernelVersion string                              // not checked unless it is a semantic version
	Enabled       func(id string, optional bool) bool // by the configuration; nil: all
	// Refuse returns an error if the permissions of a manifest are not allowed; nil: all are.
	Refuse func(*Manifest) error
	// Consent returns an error if the owner did not allow what a manifest asks for; nil: all is
	// allowed.
	Consent func(*Manifest) error
}

// Resolve returns which extensions may start. Of two with the same id or command the later
// entry is disabled, so built-ins go first. The manifest of an entry with an error is the
// last valid one, and counts.
func Resolve(entries []Entry, o Options) *Set {
	r := resolver{byID: map[string]*candidate{}}
	for _, e := range entries {
		r.admit(e, o)
	}
	r.dependencies()
	r.cycles()
	r.dependencies()
	r.commands()
	r.dependencies()
	return r.set()
}

type candidate struct {
	id, file string
	manifest *Manifest
	out      *Disabled
}

type resolver struct {
	all  []*candidate
	byID map[string]*candidate
}

func (c *candidate) disable(cause Cause, others []string, format string, args ...any) {
	c.out = &Disabled{ID: c.id, File: c.file, Cause: cause, Others: others, Reason: fmt.Sprintf(format, args...)}
}

func (r *resolver) admit(e Entry, o Options) {
	c := &candidate{id: e.ID, file: e.File, manifest: e.Manifest}
	r.all = append(r.all, c)
	if first, taken := r.byID[e.ID]; taken {
		c.disable(Duplicate, []string{e.ID}, "%s already has the id %s, and the first one starts", first.file, e.ID)
		return
	}
	r.byID[e.ID] = c
	switch {
	case o.Enabled != nil && !o.Enabled(e.ID, e.Manifest != nil && e.Manifest.Optional):
		c.disable(SwitchedOff, nil, "not enabled in the configuration (extensions.%s.enabled)", e.ID)
	case e.Manifest == nil && e.Err != nil:
		c.disable(Invalid, nil, "%s", e.Err)
	case e.Manifest == nil:
		c.disable(Invalid, nil, "it has no manifest")
	case !KernelFits(e.Manifest.Requires.Kernel, o.KernelVersion):
		c.disable(Kernel, nil, "it requires kernel %s, and this is %s", e.Manifest.Requires.Kernel, o.KernelVersion)
	default:
		for _, check := range []struct {
			cause Cause
			of    func(*Manifest) error
		}{{Refused, o.Refuse}, {Consent, o.Consent}} {
			if check.of == nil || c.out != nil {
				continue
			}
			if err := check.of(e.Manifest); err != nil {
				c.disable(check.cause, nil, "%s", err)
			}
		}
	}
}

// KernelFits reports whether a version of the kernel is in a range; an empty range has all. A
// pre-release counts as its release.
func KernelFits(constraint, version string) bool {
	if constraint == "" {
		return true
	}
	v, err := semver.NewVersion(version)
	if err != nil {
		return true
	}
	c, err := semver.NewConstraint(constraint)
	if err != nil {
		return false
	}
	release, err := v.SetPrerelease("")
	return err == nil && (c.Check(&release) || c.Check(v))
}

// dependencies disables extensions with missing or disabled requirements, transitively.
func (r *resolver) dependencies() {
	for again := true; again; {
		again = false
		for _, c := range r.all {
			if c.out != nil {
				continue
			}
			for _, id := range c.manifest.Requires.Extensions {
				d, ok := r.byID[id]
				if !ok {
					c.disable(Missing, []string{id}, "it requires the extension %s, which is not installed", id)
				} else if d.out != nil {
					c.disable(Dependency, []string{id}, "it requires the extension %s, which does not start (%s)", id, d.out.Cause)
				} else {
					continue
				}
				again = true
				break
			}
		}
	}
}

// cycles disables all members of every cycle and names them in order.
func (r *resolver) cycles() {
	for _, c := range r.all {
		if c.out != nil {
			continue
		}
		if path := r.pathBack(c); path != nil {
			c.disable(Cycle, path, "it requires itself: %s", strings.Join(append(slices.Clone(path), c.id), " -> "))
		}
	}
}

// pathBack returns a shortest path of requirements from a candidate back to itself.
// Already disabled members of cycles still count.
func (r *resolver) pathBack(start *candidate) []string {
	from := map[string]string{}
	queue := []string{start.id}
	for len(queue) > 0 {
		id := queue[0]
		queue = queue[1:]
		c := r.byID[id]
		if c == nil || c.manifest == nil || c.out != nil && c.out.Cause != Cycle {
			continue
		}
		for _, next := range c.manifest.Requires.Extensions {
			if next == start.id {
				path := []string{id}
				for id != start.id {
					id = from[id]
					path = append(path, id)
				}
				slices.Reverse(path)
				return path
			}
			if _, seen := from[next]; !seen {
				from[next] = id
				queue = append(queue, next)
			}
		}
	}
	return nil
}

func (r *resolver) commands() {
	owner := map[string]string{}
	for _, c := range r.all {
		if c.out != nil {
			continue
		}
		for _, command := range c.manifest.Provides.Commands {
			if first, taken := owner[command.Name]; taken {
				c.disable(Clash, []string{first}, "%s already has the command /%s, and the first one starts",
					first, command.Name)
				break
			}
		}
		if c.out == nil {
			for _, command := range c.manifest.Provides.Commands {
				owner[command.Name] = c.id
			}
		}
	}
}

func (r *resolver) set() *Set {
	s := &Set{}
	level := map[string]int{}
	waiting := []*candidate{}
	for _, c := range r.all {
		if c.out != nil {
			s.Disabled = append(s.Disabled, *c.out)
		} else {
			waiting = append(waiting, c)
		}
	}
	for len(waiting) > 0 {
		var now []*Manifest
		var later []*candidate
		for _, c := range waiting {
			ready := true
			for _, id := range c.manifest.Requires.Extensions {
				if at, ok := level[id]; !ok || at >= len(s.Levels) {
					ready = false
				}
			}
			if ready {
				now = append(now, c.manifest)
				level[c.id] = len(s.Levels)
			} else {
				later = append(later, c)
			}
		}
		if len(now) == 0 {
			panic("manifests: a cycle is left after all cycles were disabled")
		}
		s.Levels = append(s.Levels, now)
		waiting = later
	}
	return s
}
