//go:build linux && !amd64 && !arm64

package confine

// There are no filters for these machines.
const (
	auditArch = 0
	x32       = 0
)

var olderModes []uint32
