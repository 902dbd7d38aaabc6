package pattern_test

import (
	"sync"
	"testing"

	"github.com/switchboard-run/switchboard/extensions/offline/pattern"
)

func TestAPatternIsCompiledOnFirstUse(t *testing.T) {
	t.Parallel()
	p := pattern.New(`^(a+)(b)?$`)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if !p.MatchString("aab") || p.MatchString("b") {
				t.Error("it matches something else")
			}
			if m := p.FindStringSubmatch("aab"); len(m) != 3 || m[1] != "aa" {
				t.Errorf("got %q", m)
			}
		})
	}
	all.Wait()
	bad := pattern.New(`(`)
	defer func() {
		if recover() == nil {
			t.Error("a bad pattern does not panic")
		}
	}()
	bad.MatchString("")
}
