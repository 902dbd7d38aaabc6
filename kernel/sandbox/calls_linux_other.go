//go:build linux && !amd64 && !arm64

package sandbox

// There are no filters for these machines.
const (
	auditArch = 0
	x32       = 0
)

var (
	olderModes      []uint32
	haveSystemCalls = false
)
