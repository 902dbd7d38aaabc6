// Package seed gives tests random numbers that are the same in every run.
//
// They follow from one number: 1, or SWITCHBOARD_SEED if that is set. So
// `go test` always does the same, and a run with another number can be repeated.
package seed

import (
	"flag"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// Variable is the environment variable that holds another seed than 1.
const Variable = "SWITCHBOARD_SEED"

// Number returns the seed of this run, at least 1, and logs it.
func Number(t testing.TB) uint64 {
	t.Helper()
	n, text := uint64(1), os.Getenv(Variable)
	if text != "" {
		var err error
		if n, err = strconv.ParseUint(text, 10, 64); err != nil || n == 0 {
			t.Fatalf("read %s: %q is not a number from 1 to 2^64-1", Variable, text)
		}
	}
	t.Logf("repeat with %s=%d", Variable, n)
	return n
}

// Rand returns random numbers that follow from the seed and the name of the test.
// They are safe for concurrent use, but goroutines that share them may get them in
// another order in each run.
func Rand(t testing.TB) *rand.Rand {
	t.Helper()
	name := fnv.New64a()
	_, _ = name.Write([]byte(t.Name()))                                 // never fails
	return rand.New(&source{pcg: rand.NewPCG(Number(t), name.Sum64())}) //nolint:gosec // for tests
}

type source struct {
	mu  sync.Mutex
	pcg *rand.PCG
}

func (s *source) Uint64() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pcg.Uint64()
}

var setRapid sync.Once

// Check is rapid.Check with the seed of this run. The flag -rapid.seed overrides it.
func Check(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	number := Number(t)
	setRapid.Do(func() {
		given := false
		flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.seed" })
		if given {
			return
		}
		if err := flag.Set("rapid.seed", strconv.FormatUint(number, 10)); err != nil {
			t.Fatalf("set the seed of rapid: %v", err)
		}
	})
	rapid.Check(t, property)
}
