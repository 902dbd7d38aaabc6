package supervisor

import (
	"os/exec"
	"slices"
	"testing"
)

func TestEnvironmentsAreMerged(t *testing.T) {
	t.Parallel()
	a, b := Spec{ID: "a", Env: []string{"A=1", "B=2"}}, Spec{ID: "b", Env: []string{"B=3", "C=4", "AA=5"}}
	l := merge(map[string]Spec{"a": a, "b": b})
	got := (&exec.Cmd{Env: l.Env}).Environ()
	slices.Sort(got)
	if !slices.Equal(got, []string{"A=1", "AA=5", "B=2", "C=4"}) {
		t.Errorf("merged: %q", got)
	}
}
