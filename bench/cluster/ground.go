package main

import (
	"errors"
	"fmt"
	"slices"
	"sync"
)

// ground is what the servers of a run stand on: they are ended with it, and what fails in
// them ends the run.
type ground struct {
	mu       sync.Mutex
	cleanups []func()
}

// failure is the value of a panic with which ground ends a part.
type failure struct{ error }

// stand calls f with a ground, ends everything on it, and returns what failed.
func stand(f func(g *ground) error) (err error) {
	g := &ground{}
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

func (g *ground) end() {
	g.mu.Lock()
	all := slices.Clone(g.cleanups)
	g.cleanups = nil
	g.mu.Unlock()
	for _, f := range slices.Backward(all) {
		f()
	}
}

// Helper implements postgrestest.T.
func (g *ground) Helper() {}

// Cleanup implements postgrestest.T.
func (g *ground) Cleanup(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.cleanups = append(g.cleanups, f)
}

// Failed implements postgrestest.T.
func (g *ground) Failed() bool { return false }

// Fatal implements postgrestest.T.
func (g *ground) Fatal(args ...any) { panic(failure{errors.New(fmt.Sprint(args...))}) }

// Fatalf implements postgrestest.T.
func (g *ground) Fatalf(format string, args ...any) { panic(failure{fmt.Errorf(format, args...)}) }

// Logf implements postgrestest.T.
func (g *ground) Logf(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// Skip implements postgrestest.T.
func (g *ground) Skip(args ...any) { g.Fatal(args...) }
