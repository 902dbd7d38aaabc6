// Package servers runs PostgreSQL servers for programs that measure.
package servers

import (
	"errors"
	"fmt"
	"slices"
	"sync"
)

// Ground is what the servers of a run stand on: they are ended with it, and what fails in
// them ends the run.
type Ground struct {
	mu       sync.Mutex
	cleanups []func()
}

// failure is the value of a panic with which ground ends a part.
type failure struct{ error }

// Stand calls f with a ground, ends everything on it, and returns what failed.
func Stand(f func(g *Ground) error) (err error) {
	g := &Ground{}
	grounds.Store(g, true)
	defer func() {
		p := recover()
		g.end()
		grounds.Delete(g)
		if failed, ok := p.(failure); ok {
			err = errors.Join(err, failed)
		} else if p != nil {
			panic(p)
		}
	}()
	return f(g)
}

// grounds are those in use, to end after an interrupt.
var grounds sync.Map

// EndAll ends what stands, after an interrupt.
func EndAll() {
	grounds.Range(func(g, _ any) bool {
		g.(*Ground).end()
		return true
	})
}

func (g *Ground) end() {
	g.mu.Lock()
	all := slices.Clone(g.cleanups)
	g.cleanups = nil
	g.mu.Unlock()
	for _, f := range slices.Backward(all) {
		f()
	}
}

// Helper implements postgrestest.T.
func (g *Ground) Helper() {}

// Cleanup implements postgrestest.T.
func (g *Ground) Cleanup(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.cleanups = append(g.cleanups, f)
}

// Failed implements postgrestest.T.
func (g *Ground) Failed() bool { return false }

// Fatal implements postgrestest.T.
func (g *Ground) Fatal(args ...any) { panic(failure{errors.New(fmt.Sprint(args...))}) }

// Fatalf implements postgrestest.T.
func (g *Ground) Fatalf(format string, args ...any) { panic(failure{fmt.Errorf(format, args...)}) }

// Logf implements postgrestest.T.
func (g *Ground) Logf(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// Skip implements postgrestest.T.
func (g *Ground) Skip(args ...any) { g.Fatal(args...) }
