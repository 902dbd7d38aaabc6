package sdk

import (
	"context"
	"time"
)

const (
	// minPause and maxPause bound the pause before Run is called again.
	minPause = time.Second
	maxPause = time.Minute
	// runGrace is how long Run may take to return after its context has ended. It is
	// short: an uninterruptible read must not delay a shutdown.
	runGrace = 100 * time.Millisecond
)

// keepRunning calls Run until it returns without an error or the extension
// ends.
func (a *activation) keepRunning() {
	defer close(a.ran)
	if a.instance.ext.Run == nil {
		return
	}
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		err := a.runOnce()
		if err == nil || a.background.Err() != nil {
			return
		}
		a.log.Error("background work failed, restarting it after a pause", "error", err, "pause", pause.String())
		before := a.kernel.readiness.now()
		a.kernel.SetReadiness(Offline, err.Error())
		if !sleep(a.background, pause) {
			return
		}
		a.kernel.SetReadiness(before.GetState(), before.GetDetail())
	}
}

func (a *activation) runOnce() (err error) {
	defer guard(a.log, "run", &err)
	return a.instance.ext.Run(a.background, a.kernel)
}

// awaitRun waits for Run to return, at most runGrace.
func (a *activation) awaitRun() {
	timer := time.NewTimer(runGrace)
	defer timer.Stop()
	select {
	case <-a.ran:
	case <-timer.C:
		a.log.Debug("background work ignores the end of its context")
	}
}

// sleep pauses for d; false: ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
