package cluster

import (
	"time"

	"github.com/switchboard-run/switchboard/store/commitlog"
)

func entryTime(e commitlog.Entry) time.Time { return time.UnixMicro(e.Time) }
