//go:build crashpoints

package sqlite

import (
	"os"
	"time"
)

// SWITCHBOARD_CLOCK, such as -1h, sets the clock of a store over a commit log wrong.
func init() {
	wrong := os.Getenv("SWITCHBOARD_CLOCK")
	if wrong == "" {
		return
	}
	by, err := time.ParseDuration(wrong)
	if err != nil {
		panic("SWITCHBOARD_CLOCK: " + err.Error())
	}
	clock = func() time.Time { return time.Now().Add(by) }
}
