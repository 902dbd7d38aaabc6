package router

import (
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/directory"
)

// Marked is the send with its mark, for a channel with a limit.
func Marked(e *busv1.Event, limit int) *busv1.Event {
	d, c := &directory.Directory{}, directory.Channel{ID: "telegram"}
	c.MaxLength = limit
	d.Set(&directory.Snapshot{Channels: []directory.Channel{c}})
	return New(d, nil, nil).marked("telegram", e)
}
