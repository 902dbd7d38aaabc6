package memory

import (
	"testing"

	"github.com/switchboard-run/switchboard/sdk/sdktest"
)

func TestConformance(t *testing.T) {
	sdktest.Conformance(t, New, options())
}
