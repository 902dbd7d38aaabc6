package sdk

import (
	"context"
	"time"
)

const (
	// firstPause and longestPause bound the pause before Run is called again.
	firstPause   = time.Second
	longestPause = time.Minute
	// runGrace is what Run gets to return after its context has ended. It is
	// short: a read that nothing interrupts must not hold up a shutdown.
	runGrace = 100 * time.Millisecond
)

// keepRunning calls Run until it returns without an error or the extension
// ends.
func (l *life) keepRunning() {
	defer close(l.ran)
	if l.instance.ext.Run == nil {
		return
	}
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		err := l.runOnce()
		if err == nil || l.background.Err() != nil {
			return
		}
		l.log.Error("background work ended; it starts again after a pause", "error", err, "pause", pause.String())
		before := l.kernel.readiness.now()
		l.kernel.SetReadiness(Offline, err.Error())
		if !sleep(l.background, pause) {
			return
		}
		l.kernel.SetReadiness(before.GetState(), before.GetDetail())
	}
}

func (l *life) runOnce() (err error) {
	defer guard(l.log, "run", &err)
	return l.instance.ext.Run(l.background, l.kernel)
}

// awaitRun gives Run a moment to return.
func (l *life) awaitRun() {
	timer := time.NewTimer(runGrace)
	defer timer.Stop()
	select {
	case <-l.ran:
	case <-timer.C:
		l.log.Debug("background work ignores the end of its context")
	}
}

// sleep reports whether it slept its time out.
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
