package launch

import (
	"errors"
	"testing"
)

func TestNothingStartsAfterClose(t *testing.T) {
	t.Parallel()
	s := newSpawner()
	if err := s.do(func() error { return nil }); err != nil {
		t.Errorf("before: %v", err)
	}
	s.close()
	s.close()
	if err := s.do(func() error { t.Error("it starts"); return nil }); !errors.Is(err, errClosed) {
		t.Errorf("after: %v", err)
	}
}
