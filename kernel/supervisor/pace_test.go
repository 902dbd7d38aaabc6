package supervisor

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestOutputIsReadAtAPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		p := pace{ctx: ctx}
		begin := time.Now()
		p.read(outputBurst)
		if took := time.Since(begin); took != 0 {
			t.Errorf("a burst takes %s", took)
		}
		for range 10 {
			p.read(outputRate)
		}
		if took := time.Since(begin).Round(time.Millisecond); took != 10*time.Second {
			t.Errorf("ten seconds' worth take %s", took)
		}
		time.Sleep(time.Minute)
		begin = time.Now()
		p.read(outputBurst)
		if took := time.Since(begin); took != 0 {
			t.Errorf("after a pause a burst takes %s", took)
		}
		end()
		p.read(100 * outputBurst)
		if took := time.Since(begin); took != 0 {
			t.Errorf("what is left of a process that has ended takes %s", took)
		}
	})
}
