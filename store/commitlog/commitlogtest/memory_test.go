package commitlogtest_test

import (
	"testing"

	"github.com/switchboard-run/switchboard/store/commitlog"
	"github.com/switchboard-run/switchboard/store/commitlog/commitlogtest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	commitlogtest.Exercise(t, func(*testing.T) commitlog.Log { return &commitlogtest.Memory{} })
}
