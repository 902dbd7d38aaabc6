package seed_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/switchboard-run/switchboard/internal/seed"
)

func draw(t *testing.T) (drawn []uint64) {
	t.Helper()
	random := seed.Rand(t)
	for range 5 {
		drawn = append(drawn, random.Uint64())
	}
	return drawn
}

func TestNumbersFollowFromTheSeedAndTheTest(t *testing.T) {
	t.Setenv(seed.Variable, "")
	plain := draw(t)
	if again := draw(t); !slices.Equal(again, plain) {
		t.Errorf("drawn %v, and then %v", plain, again)
	}
	t.Setenv(seed.Variable, "1")
	if one := draw(t); !slices.Equal(one, plain) {
		t.Errorf("drawn %v, with the seed 1 %v", plain, one)
	}
	t.Setenv(seed.Variable, "2")
	if two := draw(t); slices.Equal(two, plain) {
		t.Errorf("drawn %v with the seeds 1 and 2", plain)
	}
	t.Setenv(seed.Variable, "")
	t.Run("other", func(t *testing.T) {
		if other := draw(t); slices.Equal(other, plain) {
			t.Errorf("drawn %v in two tests", plain)
		}
	})
}

func TestChecksOfRapidAreTheSame(t *testing.T) {
	t.Parallel()
	var drawn [2][]string
	for i := range drawn {
		seed.Check(t, func(rt *rapid.T) { drawn[i] = append(drawn[i], rapid.String().Draw(rt, "text")) })
	}
	if len(drawn[0]) < 2 || !slices.Equal(drawn[0], drawn[1]) {
		t.Errorf("drawn %q, and then %q", drawn[0], drawn[1])
	}
}

// Tests get random numbers from this package alone, or they differ in each run.
func TestNoTestHasASeedOfItsOwn(t *testing.T) {
	t.Parallel()
	own := regexp.MustCompile(`(^|[^.\w])rand\.(N|Perm|Shuffle|Int\w*|Uint\w*|Float\w*|NormFloat64|ExpFloat64)\(|\brapid\.Check\(`)
	root := filepath.Join("..", "..")
	found := 0
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, _ := filepath.Rel(root, path)
		name = filepath.ToSlash(name)
		test := strings.HasSuffix(name, "_test.go") || strings.Contains(name, "test/") && strings.HasSuffix(name, ".go")
		if !test || strings.HasPrefix(name, "internal/seed/") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		found++
		for i, line := range strings.Split(string(text), "\n") {
			if own.MatchString(line) {
				t.Errorf("%s:%d: use the package internal/seed: %s", name, i+1, strings.TrimSpace(line))
			}
		}
		return nil
	})
	if err != nil || found < 100 {
		t.Errorf("%d tests were read: %v", found, err)
	}
}
