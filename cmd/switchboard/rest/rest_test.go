package rest

import (
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestMemoryIsGivenBackTwicePerPieceOfWork also shows that it is not while work
// goes on, nor for next to nothing.
func TestMemoryIsGivenBackTwicePerPieceOfWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var given []time.Duration
		total := func() uint64 { // works at first, for 10 s from 100 s and from 400 s on, and a little always
			s := uint64(time.Since(began) / time.Second)
			return 8<<20 + s*1000 + min(s, 3)<<20 + min(max(s, 100)-100, 10)<<20 + min(max(s, 400)-400, 10)<<20
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			watch(t.Context(), total, func() { given = append(given, time.Since(began)) })
		}()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if want := []time.Duration{4 * time.Second, 119 * time.Second, 239 * time.Second, 419 * time.Second,
			539 * time.Second}; !slices.Equal(given, want) {
			t.Errorf("given back at %v, want %v", given, want)
		}
	})
}

func TestAStartIsOverWithTheFirstCollection(t *testing.T) {
	if _, set := os.LookupEnv("GOGC"); set {
		t.Skip("GOGC is set")
	}
	usual := debug.SetGCPercent(100)
	defer debug.SetGCPercent(usual)
	begin()
	for range 1000 {
		runtime.GC()
		now := debug.SetGCPercent(100)
		if now == 100 {
			return
		}
		debug.SetGCPercent(now)
		runtime.Gosched()
	}
	t.Error("it goes on")
}
