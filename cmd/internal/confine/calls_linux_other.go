//go:build linux && !amd64 && !arm64

package confine

// Filters are not supported on other architectures.
const (
	auditArch = 0
	x32       = 0
)

var olderModes []uint32
